"""What arrives on one response of a server: messages, among them the answer that is waited for."""

from __future__ import annotations

from collections.abc import Callable

from httpx_sse import ServerSentEvent

from bridge.core.wire import loads
from bridge.upstream.channel import ChannelError, Message
from bridge.upstream.wording import excerpt

SHORTEST_PAUSE = 100  # milliseconds, as servers give them
LONGEST_PAUSE = 30_000


class Inbox:
    """Takes what arrives on a response, or on several if it is interrupted and resumed.

    `number` is the id of the request that is to be answered there; None where none is.
    `on_request` takes each request of the server's and returns its reply, None if it comes later.
    """

    def __init__(
        self,
        number: int | None,
        on_notification: Callable[[Message], None],
        on_request: Callable[[Message], Message | None],
    ) -> None:
        self.answer: Message | None = None
        self.last_event_id = ""
        self.retry_seconds = 1.0
        self._number = number
        self._on_notification = on_notification
        self._on_request = on_request

    def take_event(self, event: ServerSentEvent) -> list[Message]:
        """Take one server-sent event; return what must be sent back.

        Raises:
            ChannelError: It is no message.
        """
        if event.id:
            self.last_event_id = event.id

        if event.retry is not None:
            self.retry_seconds = min(max(event.retry, SHORTEST_PAUSE), LONGEST_PAUSE) / 1000

        # Without data it is no message: a comment behind an id looks so, or a place to resume at.
        if event.event != "message" or not event.data:
            return []

        return self.take(event.data)

    def take(self, text: bytes | str) -> list[Message]:
        """Take one message, or a batch, as JSON; return what must be sent back.

        Raises:
            ChannelError: It is not JSON, or not a JSON object.
        """
        try:
            message = loads(text)
        except ValueError:
            message = None

        replies: list[Message] = []
        for one in message if isinstance(message, list) else [message]:
            if not isinstance(one, dict):
                raise ChannelError(f"the server sent no MCP message: {excerpt(text)}", sent=True)

            method = one.get("method")
            if method is None:
                self._answered(one)
            elif "id" in one:
                reply = self._on_request(one)
                if reply is not None:
                    replies.append(reply)
            else:
                self._on_notification(one)

        return replies

    def _answered(self, message: Message) -> None:
        """Keep the answer to our request: an error may lack the id of what could not be read."""
        if self._number is None or self.answer is not None:
            return

        number = message.get("id")
        if number == self._number or (number is None and "error" in message):
            self.answer = message
