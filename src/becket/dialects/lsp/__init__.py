"""`lsp`: a language server as an extension of a host.

The host's handshake is LSP's own: what the host serves of a client's methods is announced, the configuration of the
extension goes along as `initializationOptions`, and the folder that the host runs in is the project. The commands of
the server are run as commands, with their progress as tasks; what it logs goes to the host's log. It has no tools,
providers, hooks or memory. All that a client needs besides (`becket.interop.lsp`, with the types of lsprotocol) works
on the link of the extension: `extension.peer.call(lsp.TEXT_DOCUMENT_HOVER, ...)`.

An `ExtensionServer` that an LSP client has started offers its commands.
"""

from __future__ import annotations

from becket.dialects.lsp.link import LSP

__all__ = ["LSP"]
