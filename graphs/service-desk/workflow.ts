import { defineWorkflow, field, todoField, todoTools } from "statecard";
import { z } from "zod";
import { callProvider, customerNumber, findNumber, MAX_CALLS } from "./tools.ts";

const { writeTodos, setTodo } = todoTools("todos");

/** A contract is cancelled by telephone, with three calls at most, and the end says what really came of it. */
export const serviceDesk = defineWorkflow({
  name: "service-desk",
  version: 1,
  goal: "Cancel a customer's contract by telephone.",
  instructions: "Be short and friendly. Tell the user only what came of the calls.",
  state: {
    customer: field(customerNumber).describe("the customer number"),
    provider: field(z.string()).runtimeOnly(),
    number: field(z.string()).describe("the provider's telephone number").runtimeOnly(),
    callsMade: field(z.int().min(0).max(MAX_CALLS)).runtimeOnly(),
    callLog: field(z.string().max(2000)).describe("what came of the calls, in order").runtimeOnly(),
    confirmation: field(z.string()).describe("the provider's confirmation").runtimeOnly().writeOnce(),
    todos: todoField().describe("what is to be done").runtimeOnly(),
    report: field(z.string().max(2000)).describe("what the user was told at the end").writeOnce(),
  },
  input: ["customer"],
  tools: { findNumber, callProvider, writeTodos, setTodo },
  initial: "intake",
  steps: {
    intake: {
      writes: ["customer"],
      to: ["intake", "preparing", "reporting"],
      instructions:
        "Ask for the customer number, four digits, unless the user has given it. Without one go to reporting.",
    },
    preparing: {
      requires: ["customer"],
      writes: ["customer"],
      tools: ["findNumber", "writeTodos"],
      to: ["preparing", "calling", "reporting"],
      instructions:
        "Look up the provider's number and write a todo list. If there is no contract, ask for another customer number; if that does not help, go to reporting.",
    },
    calling: {
      requires: ["customer", "number"],
      tools: ["callProvider", "findNumber", "setTodo"],
      to: [
        "calling",
        {
          to: "reporting",
          when: ({ confirmation, callsMade }) => confirmation !== null || (callsMade ?? 0) >= MAX_CALLS,
          because: "it is not cancelled and there are calls left",
        },
      ],
      instructions:
        "Call until the contract is cancelled or no calls are left. Then set the status of the todo items and go to reporting.",
    },
    reporting: {
      writes: ["report"],
      to: [
        "cancelled",
        {
          to: "not_cancelled",
          when: ({ confirmation }) => confirmation === null,
          because: "the provider has confirmed it",
        },
      ],
      instructions:
        "Write the report and tell it in a reply: the confirmation, or what came of each call and what is open.",
    },
    cancelled: { requires: ["confirmation", "report"], final: true },
    not_cancelled: { requires: ["report"], final: true },
  },
});
