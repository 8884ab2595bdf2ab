"""What other languages are made from: the schema bundle, a model of it, and an emitter for each language with a kit."""
