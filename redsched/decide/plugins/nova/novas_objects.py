"""Stand-ins for classes that are Nova's own, or derived from them: parts of them are objects of Nova, as they expect.

Nova is imported when the first such object is made: it is installed, or there would be no class of Nova.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from redsched.decide.plugins.nova.request_spec import IMAGE, RequestSpec
from redsched.errors import InvalidRequest


class NovasRequestSpec(RequestSpec):
    """A request whose image is an ImageMeta, which has Nova's properties only, with values of their types."""


def is_novas(plugin: object) -> bool:
    """Return whether the class of an object, or one that it derives from, is Nova's."""
    return any(one.__module__.partition(".")[0] == "nova" for one in type(plugin).__mro__)


def objects(module: str) -> Any:
    """Return a module of nova.objects. All objects are registered first, as they refer to each other."""
    import_module("nova.objects").register_all()
    return import_module(f"nova.objects.{module}")


def _image(spec: RequestSpec) -> Any:
    """Return the image. Raises InvalidRequest if a property has a value that Nova does not allow."""
    texts, module = spec._request.properties, objects("image_meta")
    given = {"id": texts[IMAGE]} if IMAGE in texts else {}
    return module.ImageMeta(properties=_properties(module, texts), **given)


def _properties(module: Any, texts: Mapping[str, str]) -> Any:
    for name, text in texts.items():
        try:
            module.ImageMetaProps.from_dict({name: text})
        except Exception as error:  # a ValueError, or one of Nova's that are none
            raise InvalidRequest(f"properties has {name} {text!r}, which Nova does not accept: {error}") from error
    return module.ImageMetaProps.from_dict(dict(texts))


_READERS: Mapping[str, Callable[[RequestSpec], Any]] = {"image": _image}
NovasRequestSpec._readers = {**RequestSpec._readers, **_READERS}
