"""What the documentation says is true: its programs run, its tables follow the code, its bytes are the wire's."""
