"""Containers that one end changed in place, made to hold the same at the other end. Run alone: no."""

import collections


def split(answer):
    """Result, arguments and keyword arguments out of an answer that has them; TypeError for any other."""
    if type(answer) is not tuple or len(answer) != 3 or (type(answer[1]), type(answer[2])) != (tuple, dict):
        raise TypeError("an answer without arguments")
    return answer


def put_back(old, new):
    """Make `old` hold what `new` holds, where both are the same sort of container, keeping identities inside."""
    if type(old) is not type(new):
        return
    if type(old) is list:
        if len(old) == len(new) and any(type(x) in (list, dict, set) for x in old):
            for i, (a, b) in enumerate(zip(old, new, strict=True)):
                if type(a) in (list, dict, set) and type(a) is type(b):
                    put_back(a, b)
                else:
                    old[i] = b
        else:
            old[:] = new
    elif isinstance(old, dict):
        kept = {k: v for k, v in old.items() if k in new}
        old.clear()
        for key, value in new.items():
            if key in kept and type(kept[key]) in (list, dict, set) and type(kept[key]) is type(value):
                put_back(kept[key], value)
                value = kept[key]
            old[key] = value
    elif type(old) in (set, bytearray, collections.deque):
        old.clear()
        old.update(new) if type(old) is set else old.extend(new)
