"""A store with something in every list: services in this process, and what was asked of them.

`landed serve --demo` opens with it, so that a person sees each kind of page, and a browser's tests
find something to press. Everything in the store came there by the runtime's own verbs.
"""
