import { ChatOpenAI } from "@langchain/openai";
import { recordingModel, scriptedModel } from "statecard/testing";
import { afterEach, expect, test, vi } from "vitest";
import { destinationOf } from "../../src/decision/destination.ts";
import { RemoteModel } from "../support/remote-model.ts";

const openai = (baseURL?: string) =>
  new ChatOpenAI({ apiKey: "none", model: "gpt-5-mini", ...(baseURL ? { configuration: { baseURL } } : {}) });

afterEach(() => vi.unstubAllEnvs());

test("a model of OpenAI goes where its address says, and to OpenAI without one", () => {
  vi.stubEnv("OPENAI_BASE_URL", "");
  expect(destinationOf(openai())).toEqual({
    name: "api.openai.com",
    model: "gpt-5-mini at api.openai.com",
    isLocal: false,
  });
  expect(destinationOf(openai("http://127.0.0.1:9/v1"))).toMatchObject({ name: "127.0.0.1:9", isLocal: true });
  expect(destinationOf(openai("https://proxy.example:8443/v1"))).toMatchObject({
    name: "proxy.example:8443",
    isLocal: false,
  });
  vi.stubEnv("OPENAI_BASE_URL", "http://localhost:8080/v1");
  expect(destinationOf(openai())).toMatchObject({ name: "localhost:8080", isLocal: true });
});

test("only what is known to be here is here", () => {
  expect(destinationOf(scriptedModel([])).isLocal).toBe(true);
  const at = (url: string, hosts: string[] = []) => destinationOf(new RemoteModel([], url), hosts).isLocal;
  expect(at("http://127.8.9.1/")).toBe(true);
  expect(at("http://[::1]:1/")).toBe(true);
  expect(at("http://2130706433/")).toBe(true);
  for (const url of [
    "http://127.0.0.1.example/",
    "http://localhost.example/",
    "http://10.0.0.1/",
    "http://192.168.0.1/",
    "no address",
  ]) {
    expect(at(url), url).toBe(false);
  }
  expect(at("http://10.0.0.1/", ["10.0.0.1"])).toBe(true);
  expect(at("http://10.0.0.1:81/", ["10.0.0.1"])).toBe(false);
});

test("a model that records another is where that one is", () => {
  expect(destinationOf(recordingModel(scriptedModel([]))).isLocal).toBe(true);
  expect(destinationOf(recordingModel(openai("https://proxy.example:8443/v1")))).toEqual(
    destinationOf(openai("https://proxy.example:8443/v1")),
  );
});
