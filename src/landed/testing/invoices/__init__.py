"""The demo of plans: an invoice is drafted, issued, mailed and its reminder set, with one yes.

Reading order: post · office · clerk · scripts · designs · scenario · stage · scenarios · switches;
`real` plays some of it with processes, HTTP, SMTP and a SIGKILL, of which `process` is one.
"""
