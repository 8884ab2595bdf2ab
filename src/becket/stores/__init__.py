"""Where memory and configuration are kept: what every store can do, and one that keeps all in memory."""
