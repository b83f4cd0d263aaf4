"""One function for each kind of figure: small data in, a matplotlib Figure out. `inline_svg.svg` makes text of it.

Nothing here keeps state: no pyplot, no backend that is chosen for the whole process, no setting that stays behind. The
same data gives the same text, byte for byte.
"""
