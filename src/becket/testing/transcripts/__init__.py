"""Transcripts: recorded conversations, and how to replay them against either end."""
