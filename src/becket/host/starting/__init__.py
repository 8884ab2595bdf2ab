"""From a folder to a connected extension: discovery, manifest, consent, environment, launch, handshake."""
