"""The five roles on chat models: prompts in, validated answers out."""

from citeloom.models.chat.answerer import ChatAnswerer
from citeloom.models.chat.assembly import chat_roles
from citeloom.models.chat.contradictions import ChatContradictionJudge
from citeloom.models.chat.judge import ChatJudge
from citeloom.models.chat.planner import ChatPlanner
from citeloom.models.chat.question_planner import ChatQuestionPlanner
from citeloom.models.chat.reader import ChatReader
from citeloom.models.chat.rewriter import ChatRewriter
from citeloom.models.chat.summarizer import ChatSummarizer
from citeloom.models.chat.writer import ChatWriter

__all__ = [
    "ChatAnswerer",
    "ChatContradictionJudge",
    "ChatJudge",
    "ChatPlanner",
    "ChatQuestionPlanner",
    "ChatReader",
    "ChatRewriter",
    "ChatSummarizer",
    "ChatWriter",
    "chat_roles",
]
