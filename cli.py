"""The command line of Citeloom: `citeloom discussion exp.json`."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Final

# At the default of 700, garbage collection during the imports takes a tenth of the time of a short command.
gc.set_threshold(50_000)
# pydantic would search the metadata of all installed packages for plugins, which takes 40 ms.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

try:
    import typer

    from citeloom.api.blocking import stop_background_loop
    from citeloom.api.messages import NAME, command, given_command, program, remember_command
    from citeloom.api.run_options import SECTION_KINDS
    from citeloom.commands.options import (
        HomeOption,
        as_command,
        disk_full,
        homes_in_use,
        multi_value_hint,
        remember_home,
        resume_command,
        use_argv_name,
    )
    from citeloom.commands.output import notice, notice_command, result
    from citeloom.errors import PAUSED, UNEXPECTED, WRONG_INPUT, CiteloomError, WaitingError
except ModuleNotFoundError as missing:
    sys.stderr.write(
        f"Citeloom is not installed here ({missing.name} is missing): run 'make install', then use "
        ".venv/bin/python, or run 'pip install -e .' in the folder of cli.py.\n"
    )
    raise SystemExit(2) from None

_CTRL_C = 130  # the exit code that Typer returns on Ctrl-C
_GRACE = 1.0  # seconds for threads to finish their reads and writes; a kill at any moment loses nothing

# Commands and groups of commands, each with its module below `commands` and its name there.
_COMMANDS: Final = {
    "ingest": "adding_papers:ingest",
    "add": "adding_papers:add",
    "search": "papers:search",
    "find": "papers:find",
    "agree": "evidence_table:agree",
    "contradictions": "evidence_table:contradictions",
    **dict.fromkeys((*SECTION_KINDS, "paper"), "sections:section_command"),
    "export": "text_checks:export",
    "import": "text_checks:import_document",
    "sync-tex": "text_checks:sync_tex",
    "verify": "text_checks:verify_file",
    "check": "text_checks:check",
    "update": "text_checks:update",
    "research": "sections:research",
    "table": "evidence_table:make_table",
    "chat": "runs:chat",
    "usage": "upkeep:usage",
    "serve": "serve:serve",
    "mcp": "serve:mcp",
    "lsp": "serve:lsp",
    "doctor": "upkeep:doctor",
    "rebuild-index": "upkeep:rebuild_index",
    "setup": "upkeep:setup",
    "papers": "papers:papers_app",
    "sync": "adding_papers:sync_app",
    "library": "upkeep:library_app",
    "tables": "evidence_table:tables_app",
    "conversations": "runs:conversations_app",
    "runs": "runs:runs_app",
    "memory": "upkeep:memory_app",
    "people": "serve:people_app",
    "journal": "upkeep:journal_app",
}
_HELP: Final = """Write paper sections whose every cited sentence links to the words it is based on.

First index your papers, then write:

  citeloom ingest my-library/ --bib my-library/library.bib

  citeloom discussion exp.json

Exit codes: 0 done; 1 unexpected error; 2 wrong usage or input, nothing changed; 3 paused, run the same command to \
resume; 4 done, but an input was refused, a part could not be written or judged, or verify or check found something \
wrong."""


def command_line(arguments: Sequence[str]) -> typer.Typer:
    """Build the command line with only the given command, or with all of them, which takes 100 ms, if none is given."""
    after_home = 2 if arguments[:1] == ["--home"] else int(arguments[:1] != [] and arguments[0].startswith("--home="))
    given = next(iter(arguments[after_home:]), "")
    app = typer.Typer(
        name=NAME,
        callback=_store_global_options,
        help=_HELP,
        no_args_is_help=True,
        add_completion=program() == NAME,  # a shell completes programs by their name
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for name in [given] if given in _COMMANDS else _COMMANDS:
        module, _, attribute = _COMMANDS[name].partition(":")
        found = getattr(import_module(f"citeloom.commands.{module}"), attribute)
        if isinstance(found, typer.Typer):
            for each in found.registered_commands:
                each.callback = as_command(each.callback) if each.callback else None
            app.add_typer(found, name=name)
        else:
            call = found(name) if attribute == "section_command" else found
            app.command(name, cls=getattr(found, "command_class", None))(call if name == "setup" else as_command(call))
    return app


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        result(f"{NAME} {version(NAME)}")
        raise typer.Exit


def _store_global_options(
    context: typer.Context,
    home: HomeOption = None,
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    remember_home(home)
    remember_command(context.invoked_subcommand)


def main() -> None:
    """Run the command line; ends with one of the exit codes of `citeloom.errors`."""
    code = _run()
    if not stop_background_loop(_GRACE):  # only after Ctrl-C; Python would otherwise wait for its threads
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    gc.freeze()  # else a last garbage collection at exit takes 0.1 s
    raise SystemExit(code)


def _run() -> int:
    try:
        made = typer.main.get_command(command_line(sys.argv[1:]))
        use_argv_name(made)
        code = int(made(prog_name=program(), standalone_mode=False) or 0)
        return _report_interrupt() if code == _CTRL_C else code
    except CiteloomError as error:
        if full := disk_full(error, homes_in_use):
            return _report_full_disk(full)
        if isinstance(error, WaitingError):
            notice(str(error))
        elif error.exit_code == PAUSED:
            notice_command(f"Paused: {error} To resume:", resume_command(sys.argv, error))
        else:
            unhelped = error.exit_code == WRONG_INPUT and not error.help and given_command()
            hint = f" See '{command(given_command())} --help'." if unhelped else ""
            notice(f"Error: {error}{hint}")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _report_interrupt()
    except BrokenPipeError:
        _discard_output()
        return UNEXPECTED
    except Exception as error:  # noqa: BLE001  # the only place that turns a bug into one line and exit code 1
        if full := disk_full(error, homes_in_use):
            return _report_full_disk(full)
        return _report_error(error)


def _report_interrupt() -> int:
    saved = "Interrupted. Completed calls are saved; run the same command to resume:"
    notice_command(saved, resume_command(sys.argv))
    return PAUSED


def _report_full_disk(message: str) -> int:
    _discard_output()  # Python would flush the buffer at exit
    notice(f"Paused: {message}")
    return PAUSED


def _discard_output() -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115


def _report_error(error: Exception) -> int:
    """Report a usage error or an unexpected error in one line; with CITELOOM_DEBUG, raise the latter."""
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        context = getattr(error, "ctx", None)
        if context and type(error).__name__ == "NoArgsIsHelpError":  # a command group without a subcommand
            result(context.get_help())
            return WRONG_INPUT
        hint = f" See '{context.command_path} --help'." if context else ""
        hint = multi_value_hint(error, sys.argv) or hint
        message = error.format_message().replace("Value error, ", "").rstrip(".")
        notice(f"Error: {message}{'' if message.endswith('?') else '.'}{hint}")
        return WRONG_INPUT
    if os.environ.get("CITELOOM_DEBUG"):
        raise error
    notice(
        f"Unexpected error: {type(error).__name__}: {' '.join(str(error).split())} "
        "(set CITELOOM_DEBUG=1 for the traceback; please report it)."
    )
    return UNEXPECTED


if __name__ == "__main__":
    main()
