"""The blocks that results are made of."""

from typing import Any, Literal

from pydantic import BaseModel


class TextBlock(BaseModel):
    """Text for the model."""

    type: Literal["text"] = "text"
    text: str


class ImageBlock(BaseModel):
    """An image for the model, in base64, or where it is kept."""

    type: Literal["image"] = "image"
    data: str = ""
    mime_type: str = "image/png"
    name: str | None = None
    original: Any = None
    model: Any = None


DataBlock = TextBlock | ImageBlock | Any
