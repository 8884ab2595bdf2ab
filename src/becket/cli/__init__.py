"""The `becket` command line: one module per command, shared code in `support`.

`main` finds the command, `exits` says what the exit codes mean, `hosting` starts a host the same way for all of them,
`output` writes for people and for programs. Nothing here decides anything that a host would not decide as well.
"""
