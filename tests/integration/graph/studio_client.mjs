// What Studio and agent-chat-ui do, with their SDK: node studio_client.mjs SERVER MODEL EXPERIMENT PINNED; prints what happened.
import { readFileSync } from "node:fs";
import { Client } from "@langchain/langgraph-sdk";

const [apiUrl, model, experiment, pinned] = process.argv.slice(2);
const client = new Client({ apiUrl });
const input = { section: "discussion", experiment: JSON.parse(readFileSync(experiment, "utf8")), interrupts: ["needs"] };
const seen = {};

const [found] = await client.assistants.search({ graphId: "section" });
const { properties } = (await client.assistants.getSchemas(found.assistant_id)).context_schema;
seen.form = { title: properties.cite_style.title, options: properties.cite_style.enum };
const context = { chat_model: "any", chat_base_url: model, cite_style: "pandoc", top_k_initial: 1, window_tokens: 200 };
const { assistant_id: assistant } = await client.assistants.create({ graphId: "section", name: "With Pandoc's citations", context });

// A run that asks, a wrong answer, and the right one
const { thread_id: thread } = await client.threads.create();
async function run(payload) {
  const seen = { steps: [], stages: [], errors: [] };
  for await (const { event, data } of client.runs.stream(thread, assistant, { streamMode: ["updates", "custom"], ...payload })) {
    if (event === "updates") seen.steps.push(...Object.keys(data));
    else if (event === "custom") seen.stages.push(data.stage ?? data.kind);
    else if (event === "error") seen.errors.push(data);
  }
  const state = await client.threads.getState(thread);
  return { ...seen, question: state.tasks[0]?.interrupts[0]?.value ?? null, values: state.values };
}
const asked = await run({ input });
seen.asked = { steps: asked.steps, ask: asked.question.citeloom.ask, allows: asked.question.config };
seen.refused = (await run({ command: { resume: { N9: "x" } } })).question.description.split("\n")[0];
const ended = await run({ command: { resume: [{ type: "edit", args: { action: "needs", args: { add: "early stopping" } } }] } });
seen.ended = { steps: ended.steps, needs: ended.values.needs.map((need) => need.text), text: ended.values.text, errors: ended.errors };

// Back to the step before gathering, with another paper
const history = await client.threads.getHistory(thread, { limit: 100 });
const before = history.find((step) => step.next[0] === "gather");
const fork = await run({ input: null, checkpointId: before.checkpoint.checkpoint_id, context: { ...context, pinned: [pinned] } });
seen.fork = { steps: fork.steps, errors: fork.errors };
seen.history = [history.length, (await client.threads.getHistory(thread, { limit: 100 })).length];

// The typed events of version 3
const live = client.threads.stream({ assistantId: assistant });
const happens = (wanted) => new Promise((resolve) => live.onEvent((event) => wanted(event) && resolve()));
const interrupted = happens(({ method }) => method === "input.requested");
const completed = happens(({ method, params }) => method === "lifecycle" && !params.namespace.length && params.data.event === "completed");
const progress = [];
live.onEvent(({ method, params }) => method === "custom" && params.data.name === "progress" && progress.push(params.data.payload.stage));
await live.subscribe("custom:progress");
await live.run.start({ input });
await interrupted;
const { namespace, interruptId, payload } = live.interrupts[0];
await live.input.respond({ namespace, interrupt_id: interruptId, response: "accept" });
await completed;
seen.typed = { ask: payload.citeloom.ask, text: (await client.threads.getState(live.threadId)).values.text, stages: progress };
await live.close();

// The store
await client.store.putItem(["notes"], "a", { any: "thing" });
seen.store = [(await client.store.getItem(["notes"], "a")).value, (await client.store.searchItems(["notes"])).items.length];
console.log(JSON.stringify(seen));
process.exit(0);
