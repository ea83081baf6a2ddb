"""The roles on chat models: prompts in, validated answers out."""

from .answerer import ChatAnswerer
from .contradiction_judge import ChatContradictionJudge
from .factory import chat_roles
from .figure_describer import FigureDescriber
from .judge import ChatJudge
from .planners import ChatPlanner, ChatQuestionPlanner
from .reader import ChatReader
from .rewriter import ChatRewriter
from .summarizer import ChatSummarizer
from .writer import ChatWriter

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
    "FigureDescriber",
    "chat_roles",
]
