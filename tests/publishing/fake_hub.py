"""A small Hugging Face hub on this machine: repositories, git commits of small files, large files by LFS. It keeps bytes."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_a_token_that_may_write"


@dataclass
class Repository:
    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    summaries: list[str] = field(default_factory=list)


@dataclass
class Hub:
    url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    stored: dict[str, bytes] = field(default_factory=dict)
    """Large files by sha256."""
    broken: bool = False
    """Large files are not taken."""
    asked: list[str] = field(default_factory=list)


class _Asked(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def _answer(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        self.hub.asked.append(f"{method} {path}")
        if not path.startswith("/lfs/") and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._send(401, {"error": "Invalid username or password."})
        code, said = self._route(method, path, body)
        self._send(code, said)

    def _send(self, code: int, said: object) -> None:
        content = json.dumps(said).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _route(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        hub, parts = self.hub, path.strip("/").split("/")
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if name in hub.repositories:
                return 409, {"error": "You already created this model repo", "url": f"{hub.url}/{name}"}
            hub.repositories[name] = Repository(asked.get("visibility") == "private" or bool(asked.get("private")))
            return 200, {"url": f"{hub.url}/{name}"}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        if parts[0] == "lfs":
            if hub.broken:
                return 400, {"error": "the disk of the hub is full"}
            assert hashlib.sha256(body).hexdigest() == parts[1]
            hub.stored[parts[1]] = body
            return 200, {}
        if path.endswith(".git/info/lfs/objects/batch"):
            objects = [
                {**one, "actions": {"upload": {"href": f"{hub.url}/lfs/{one['oid']}"}}} for one in json.loads(body)["objects"]
            ]
            return 200, {"transfer": "basic", "objects": objects}
        name = "/".join(parts[2:4])
        repository = hub.repositories.get(name)
        if repository is None:
            return 404, {"error": "Repository not found"}
        match parts[4:]:
            case []:
                return 200, {
                    "id": name,
                    "private": repository.private,
                    "sha": "0" * 40,
                    "siblings": [{"rfilename": path} for path in repository.files],
                }
            case ["tree", *_]:
                return 200, [
                    {"type": "file", "path": path, "size": len(content), "oid": "0" * 40}
                    for path, content in repository.files.items()
                ]
            case ["preupload", _]:
                files = json.loads(body)["files"]
                return 200, {
                    "files": [
                        {
                            "path": one["path"],
                            "uploadMode": "lfs" if one["path"].endswith(".safetensors") else "regular",
                            "shouldIgnore": False,
                        }
                        for one in files
                    ]
                }
            case ["commit", _]:
                self._commit(repository, [json.loads(line) for line in body.splitlines()])
                return 200, {"commitUrl": f"{hub.url}/{name}/commit/{'0' * 40}", "commitOid": "0" * 40}
        return 404, {"error": f"no route {path}"}

    def _commit(self, repository: Repository, operations: list[dict[str, Any]]) -> None:
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "header":
                repository.summaries.append(value["summary"])
            elif operation["key"] == "file":
                repository.files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "lfsFile":
                repository.files[value["path"]] = self.hub.stored[value["oid"]]
            else:
                del repository.files[value["path"]]


@contextmanager
def fake_hub() -> Iterator[Hub]:
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (_Asked,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
