"""One folder an entrant: the program of the host and the program of its child.

Children are run as plain scripts and import only what they need: their start is measured too.
"""
