// Starts `citeloom lsp`; everything else is in the server.
const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const LANGUAGES = ["latex", "tex", "markdown", "quarto", "typst", "org"];
let client;

async function activate(context) {
  const settings = workspace.getConfiguration("citeloom");
  const home = settings.get("home");
  const server = { command: settings.get("command"), args: [...(home ? ["--home", home] : []), "lsp"] };
  client = new LanguageClient("citeloom", "Citeloom", server, {
    documentSelector: LANGUAGES.map((language) => ({ language })),
    initializationOptions: { maxCalls: settings.get("maxCalls"), judgeOnSave: settings.get("judgeOnSave") },
  });
  const check = async () => {
    const uri = window.activeTextEditor?.document.uri.toString();
    const summary = await client.sendRequest("workspace/executeCommand", { command: "citeloom.check", arguments: [uri] });
    if (summary) window.showInformationMessage(`Citeloom: ${summary}`);
  };
  context.subscriptions.push(commands.registerCommand("citeloom.checkText", check));
  await client.start();
}

module.exports = { activate, deactivate: () => client?.stop() };
