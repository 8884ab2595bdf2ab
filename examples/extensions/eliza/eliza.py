"""A provider with one model, which needs no network: Eliza, after Joseph Weizenbaum's program of 1966."""

from __future__ import annotations

import asyncio
import re

from becket import ExtensionServer, provider
from becket.contract import Message, Model, ProviderRequest, ProviderResult
from becket.extension import ProviderStream

RULES = {
    r"i need (.+)": "Why do you need {0}?",
    r"i am (.+)": "How long have you been {0}?",
    r"i feel (.+)": "Do you often feel {0}?",
    r"(?:why|what|how|who|when|where) .+": "Why do you ask?",
    r".*\b(mother|father|sister|brother)\b.*": "Tell me more about your {0}.",
    r".*\bno\b.*": "You are being a bit negative.",
}
MIRROR = {"i": "you", "me": "you", "my": "your", "am": "are", "you": "me", "your": "my", "myself": "yourself"}


class Eliza(ExtensionServer):
    id = "eliza"
    version = "1.0.0"

    @provider("eliza", display_name="Eliza", models=[Model("doctor", context_window=1_000, streaming=True)])
    async def answer(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        """A therapist who turns what you say into a question."""
        pace = float(self.config.get("pace", 0.0))
        prompt = last_words(request.messages)
        await out.thinking(f"The patient said: {prompt}")
        reply = reflect(prompt)
        for word in re.findall(r"\S+\s*", reply):
            await asyncio.sleep(pace)  # a cancelled stream ends here
            await out.text(word)
        await out.usage({"input_tokens": len(prompt.split()), "output_tokens": len(reply.split())})
        return ProviderResult.of_text(reply)


def last_words(messages: tuple[Message, ...]) -> str:
    """Returns the last text of the user; content may be text, or blocks of which some are text."""
    content = next((message.content for message in reversed(messages) if message.role == "user"), "")
    if isinstance(content, str):
        return content
    return " ".join(str(block["text"]) for block in content if block.get("type") == "text")


def reflect(prompt: str) -> str:
    """Returns Eliza's response."""
    sentence = prompt.lower().strip(" .!?")
    for pattern, reply in RULES.items():
        if found := re.fullmatch(pattern, sentence):
            return reply.format(*(mirror(part) for part in found.groups()))
    return "Please go on."


def mirror(text: str) -> str:
    """Turns the words of one person into those of the other: my dog is your dog."""
    return " ".join(MIRROR.get(word, word) for word in text.split())


if __name__ == "__main__":
    Eliza().run()
