"""A small mail server that speaks real SMTP and can behave badly: one named manner per connection."""

import email
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from typing import IO

MANNERS = frozenset(
    {
        "take",
        "no_greeting",
        "refuse_greeting",
        "refuse_hello",
        "refuse_login",
        "lock_sender",
        "close_at_recipient",
        "closing_at_text",
        "drop_at_sender",
        "drop_at_recipient",
        "hang_at_recipient",
        "drop_after_text",
        "hang_after_text",
        "hang_at_goodbye",
        "rave_at_goodbye",
        "refuse_sender",
        "refuse_recipient",
        "refuse_text",
    }
)
REFUSALS = {
    ("EHLO", "refuse_hello"): "421 closing",
    ("HELO", "refuse_hello"): "421 closing",
    ("AUTH", "refuse_login"): "535 who are you",
    ("MAIL", "refuse_sender"): "450 not now",
    ("MAIL", "lock_sender"): "550 this account is locked",
    ("RCPT", "refuse_recipient"): "450 not now",
    ("RCPT", "close_at_recipient"): "421 closing",
}


class MailServer:
    """`manners` are used up one per connection, afterwards it does as `always` says; from a recipient in `at` on
    as that says. `taken` are the messages whose text it has in
    full."""

    def __init__(self) -> None:
        self.manners: list[str] = []
        self.always = "take"
        self.at: dict[str, str] = {}
        self.taken: list[Message] = []
        self.connections = 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listening.getsockname()[1])
        self.ended = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def behave(self, *manners: str) -> None:
        """How the next connections will be treated."""
        assert MANNERS.issuperset(manners)
        self.manners += manners

    def stop(self) -> None:
        self.ended.set()
        self.listening.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            self.connections += 1
            manner = self.manners.pop(0) if self.manners else self.always
            threading.Thread(target=self._serve, args=(connection, manner), daemon=True).start()

    def _serve(self, connection: socket.socket, manner: str) -> None:
        with connection, connection.makefile("rwb", buffering=0) as line:
            if manner == "no_greeting":
                self.ended.wait()
                return
            if manner == "refuse_greeting":
                say(line, "421 too busy")
                return
            say(line, "220 ready")
            while words := line.readline().decode().split():
                if words[0].upper() == "RCPT":
                    manner = self.at.get(words[1].partition("<")[2].rstrip(">"), manner)
                if not self._answer(line, words[0].upper(), manner):
                    return

    def _answer(self, line: IO[bytes], verb: str, manner: str) -> bool:
        """Answer one command; False ends the conversation."""
        if (verb, manner) == ("RCPT", "hang_at_recipient"):
            self.ended.wait()
        if (verb, manner) in {("MAIL", "drop_at_sender"), ("RCPT", "drop_at_recipient")}:
            return False
        if verb == "DATA":
            return self._text(line, manner)
        if verb == "QUIT" and manner == "hang_at_goodbye":
            self.ended.wait()
        elif verb == "QUIT":
            say(line, "2" * 9000 if manner == "rave_at_goodbye" else "221 bye")
        elif (verb, manner) in REFUSALS:
            say(line, REFUSALS[verb, manner])
        elif verb == "EHLO" and manner == "refuse_login":
            say(line, "250-hello\r\n250 AUTH PLAIN")
        else:
            say(line, "250 ok")
        return verb != "QUIT"

    def _text(self, line: IO[bytes], manner: str) -> bool:
        say(line, "354 go on")
        text = b""
        while (part := line.readline()) not in (b".\r\n", b""):
            text += part
        if manner in ("refuse_text", "closing_at_text"):
            say(line, "451 not now" if manner == "refuse_text" else "421 closing")
            return True
        self.taken.append(email.message_from_bytes(text))
        if manner == "hang_after_text":
            self.ended.wait()
        elif manner != "drop_after_text":
            say(line, "250 taken")
            return True
        return False


def say(line: IO[bytes], words: str) -> None:
    line.write(f"{words}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """Run one on a free port."""
    server = MailServer()
    try:
        yield server
    finally:
        server.stop()
