"""The command line: one file for each command, and what they have in common.

`main` finds the command, `exits` says what the exit codes mean, `hosting` starts a host the same way for all of them,
`output` writes for people and for programs. Nothing here decides anything that a host would not decide as well.
"""
