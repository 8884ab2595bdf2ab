"""The `becket` command line: one module per command, shared code in `support`.

`main` loads the command, `support.exit_codes` maps errors to exit codes, `support.host_session` starts the host, and
`support.output` writes text and JSON. Every decision about extensions is made by the host.
"""
