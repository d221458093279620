"""The pure decisions of `landed`: no clock, no chance, no network, no disk.

Reading order: errors · visible · canonical · erased · event · outcome · changes · contract ·
declared · key · operation · operation_record · absorb · doubt · lease · seats · pacing · case ·
reference · preview · plan · approval · yes_words · yes · question · revision · undo · stop ·
journal · chain · incarnation · erasing · sentences · plan_sentences · telling · value · session ·
history · report · audit_rows · audit · rules · arrival · scope · draft · operating · advancing ·
releasing · undoing · stopping · ruling · approving · restoring · revising · next · store · census ·
keeping · archived · act · tool · onlooker · schedule. Each file may import only those before it;
import-linter keeps it so.
"""
