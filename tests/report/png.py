"""Reads PNG pictures (8 bits per channel, not interlaced) without a library, and compares them."""

import struct
import zlib


class Picture:
    """Rows of RGB bytes; transparent pixels are blended with white."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG file"
        compressed, at = b"", 8
        while at < len(data):
            length, kind = struct.unpack(">I4s", data[at:at + 8])
            content = data[at + 8:at + 8 + length]
            if kind == b"IHDR":
                self.width, self.height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", content)
                assert (depth, interlaced) == (8, 0) and colours in (2, 6), (depth, colours, interlaced)
            elif kind == b"IDAT":
                compressed += content
            at += 12 + length
        self.rows = self.unfiltered(zlib.decompress(compressed), 3 if colours == 2 else 4)

    def unfiltered(self, raw, channels):
        stride, above, rows = self.width * channels, bytes(self.width * channels), []
        for y in range(self.height):
            kind = raw[y * (stride + 1)]
            row = bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
            for i in range(stride) if kind else ():
                left = row[i - channels] if i >= channels else 0
                corner = above[i - channels] if i >= channels else 0
                if kind == 1:
                    guess = left
                elif kind == 2:
                    guess = above[i]
                elif kind == 3:
                    guess = (left + above[i]) // 2
                else:
                    estimate = left + above[i] - corner
                    guess = min((left, above[i], corner), key=lambda value: abs(estimate - value))
                row[i] = (row[i] + guess) & 255
            rows.append(row)
            above = row
        return [row if channels == 3 else self.opaque(row) for row in rows]

    @staticmethod
    def opaque(row):
        if row[3::4] == b"\xff" * (len(row) // 4):
            del row[3::4]
            return row
        return bytearray((value * alpha + 255 * (255 - alpha)) // 255
                         for *colours, alpha in zip(row[0::4], row[1::4], row[2::4], row[3::4]) for value in colours)

    def part(self, top, width, height):
        """A copy of `height` rows from `top`, cut off at `width`."""
        part = object.__new__(Picture)
        part.width, part.height = width, height
        part.rows = [row[:3 * width] for row in self.rows[top:top + height]]
        return part

    def blocks(self, size):
        """Mean colours of squares of `size` pixels."""
        means = []
        for top in range(0, self.height - size + 1, size):
            for left in range(0, self.width - size + 1, size):
                sums = [0, 0, 0]
                for row in self.rows[top:top + size]:
                    square = row[3 * left:3 * (left + size)]
                    for channel in range(3):
                        sums[channel] += sum(square[channel::3])
                means.append([value / size ** 2 for value in sums])
        return means


def difference(a, b, size=12):
    """The mean and the largest difference between two pictures' squares, from 0 to 255. Squares are larger than the
    strokes of letters, which no two programs draw alike."""
    assert (a.width, a.height) == (b.width, b.height), (a.width, a.height, b.width, b.height)
    differences = [max(abs(x - y) for x, y in zip(one, other)) for one, other in zip(a.blocks(size), b.blocks(size))]
    return sum(differences) / len(differences), max(differences)
