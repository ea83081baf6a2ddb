// Starts `citeloom lsp`; everything else is in the server.
const { commands, env, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGES = ["latex", "tex", "markdown", "quarto", "typst", "org"];
const SETTLED = 1000; // milliseconds after the last change of a setting
const OPEN = "Open the setting";
let client;

/** Start the server with the settings as they are now, instead of the one that runs. */
async function start(outputChannel) {
  if (client?.isRunning()) await client.stop();
  const settings = workspace.getConfiguration("citeloom");
  const command = settings.get("command");
  const home = settings.get("home");
  const server = { command, args: [...(home ? ["--home", home] : []), "lsp"] };
  client = new LanguageClient("citeloom", "Citeloom", server, {
    documentSelector: LANGUAGES.map((language) => ({ language })),
    initializationOptions: { maxCalls: settings.get("maxCalls"), judgeOnSave: settings.get("judgeOnSave") },
    outputChannel,
  });
  try {
    await client.start();
  } catch {
    const help = `Citeloom: ${command} cannot be started. Name the program with its path in the setting citeloom.command.`;
    window.showErrorMessage(help, OPEN).then((chosen) => {
      const action = env.remoteName ? "openRemoteSettings" : "openSettings"; // the program of the machine that runs us
      if (chosen) commands.executeCommand(`workbench.action.${action}`, { query: "citeloom.command" });
    });
  }
}

async function activate(context) {
  const output = window.createOutputChannel("Citeloom");
  const check = async () => {
    const uri = window.activeTextEditor?.document.uri.toString();
    const summary = await client.sendRequest("workspace/executeCommand", { command: "citeloom.check", arguments: [uri] });
    if (summary) window.showInformationMessage(`Citeloom: ${summary}`);
  };
  let started = start(output);
  let settling;
  const changed = workspace.onDidChangeConfiguration((event) => {
    if (!event.affectsConfiguration("citeloom")) return;
    clearTimeout(settling);
    settling = setTimeout(() => (started = started.then(() => start(output))), SETTLED);
  });
  context.subscriptions.push(output, changed, commands.registerCommand("citeloom.checkText", check));
  await started;
}

module.exports = { activate, deactivate: () => (client?.isRunning() ? client.stop() : undefined) };
