/** A request of a user, and the skill that it is for. */
export interface SkillRequest {
  /** The skill's folder. */
  readonly skill: string;
  readonly text: string;
}

// Written by one person from the bodies of recorded skills, without their descriptions, in the words of somebody who
// does not know the skill. The two halves are about different skills.

/** What the weights were tuned on. */
export const TUNING: readonly SkillRequest[] = [
  { skill: "agent-browser", text: "Log in to our staging site, click through the checkout and tell me what breaks." },
  {
    skill: "agent-browser",
    text: "Can you drive Chrome for me and read what the settings page of Slack desktop says?",
  },
  {
    skill: "parallel-feature-development",
    text: "Three of us want to build the login feature at the same time. Who should own which folder so that nobody gets in anybody's way?",
  },
  {
    skill: "parallel-feature-development",
    text: "How do we cut this epic up so several implementers can work side by side and merge cleanly at the end?",
  },
  { skill: "geomaster", text: "I have a Sentinel-2 scene and want an NDVI map of our fields." },
  {
    skill: "geomaster",
    text: "Join these district polygons with the shop locations and compute the distance to the nearest road in metres.",
  },
  { skill: "supabase-postgres-best-practices", text: "This SELECT takes nine seconds. Which index is missing?" },
  {
    skill: "supabase-postgres-best-practices",
    text: "We run out of database connections under load; how should the pool be set up, and is our RLS slowing us down?",
  },
  {
    skill: "competitor-ad-intelligence",
    text: "What is Clay running on Facebook at the moment, and which of its campaigns have been live the longest?",
  },
  {
    skill: "competitor-ad-intelligence",
    text: "Show me the hooks that rivals use in their paid campaigns and where their landing pages are weak.",
  },
  {
    skill: "azure-architecture-autopilot",
    text: "Draw me a picture of everything that is in our resource group and propose how to add a private endpoint in Bicep.",
  },
  {
    skill: "azure-architecture-autopilot",
    text: "We would like to host a chatbot with AI Search and Foundry on Azure; build all of the infrastructure for it.",
  },
  {
    skill: "yara-rule-authoring",
    text: "Write something that detects this malware family by its strings without firing on goodware.",
  },
  { skill: "yara-rule-authoring", text: "My old .yar files give errors in the new Rust version, please fix them." },
  {
    skill: "refactor-method-complexity-reduce",
    text: "The method ProcessOrder has seven nested ifs and Sonar complains; break it up into smaller helpers.",
  },
  {
    skill: "pinecone-rag",
    text: "Our agent should remember facts between sessions. Store them in a serverless vector index with one namespace per user.",
  },
  {
    skill: "pinecone-rag",
    text: "Chunk these PDFs, upsert the embeddings and answer questions from them with reranking.",
  },
  { skill: "astropy", text: "Convert these right ascensions and declinations to galactic coordinates." },
  {
    skill: "astropy",
    text: "What is the luminosity distance at redshift 1.5, and how do I open the header of a .fits image?",
  },
  {
    skill: "brainstorming",
    text: "I have a rough idea for a habit tracker. Ask me whatever you need before anybody writes code.",
  },
  { skill: "brainstorming", text: "Let us think through two or three approaches and agree on a spec first." },
  {
    skill: "flowstudio-power-automate-governance",
    text: "Which of our flows have no owner any more since Maria left the company, and which can be archived?",
  },
  {
    skill: "flowstudio-power-automate-governance",
    text: "List every connector that flows in the default environment use and tag those that touch customer data.",
  },
  { skill: "go-mcp-server-generator", text: "Scaffold a Golang project that offers two tools over stdio to Claude." },
  { skill: "screen-reader-testing", text: "Does our dropdown announce itself properly in NVDA and VoiceOver?" },
  {
    skill: "copilot-pr-autopilot",
    text: "Keep asking GitHub's bot to look at my pull request and answer all of its threads until it has nothing left to say.",
  },
  {
    skill: "webmcpify",
    text: "Make our React shop usable for AI in the browser by registering its actions with document.modelContext.",
  },
  { skill: "mutation-testing", text: "I'd like to run mewt on this Rust crate; what goes into the toml?" },
  {
    skill: "mutation-testing",
    text: "Check how good our Solidity tests are by putting small bugs into the contract and seeing which survive.",
  },
  {
    skill: "dispatching-parallel-agents",
    text: "Six test files fail for reasons that have nothing to do with each other. Send out a separate worker for each.",
  },
];

/** What is reported; nobody looked at how these did while tuning. */
export const REPORTED: readonly SkillRequest[] = [
  { skill: "histolab", text: "Cut this .svs biopsy scan into 512 pixel squares, but only where there is tissue." },
  { skill: "histolab", text: "Find the tissue on a whole slide and show me which patches have the most nuclei." },
  {
    skill: "building-pydantic-ai-agents",
    text: "Write a Python agent with RunContext dependencies that returns a typed object and has a weather function to call.",
  },
  {
    skill: "building-pydantic-ai-agents",
    text: "How do I unit test my agent without calling the real LLM, with TestModel?",
  },
  { skill: "fluentui-blazor", text: "My toast does not show up in the razor page although ShowToast is called." },
  {
    skill: "fluentui-blazor",
    text: "Add a dialog and an autocomplete field with Microsoft's components to our Blazor Server app.",
  },
  {
    skill: "quality-playbook",
    text: "Explore this repository, derive its requirements, and write functional tests and a code review protocol from them.",
  },
  {
    skill: "quality-playbook",
    text: "Do an audit of the code against its specification with several models and hunt for real defects.",
  },
  { skill: "ai-ready", text: "How do I get John Papa's thing that prepares a repository for Copilot?" },
  {
    skill: "agent-governance",
    text: "Our bot may call shell commands. Before each one, check an allow list, log it, and block prompt injections.",
  },
  {
    skill: "agent-governance",
    text: "Give every sub-agent a score that sinks when it makes mistakes, and keep an audit log of its tool calls.",
  },
  {
    skill: "pushing-commits-to-the-repo",
    text: "I am done with my changes. Open the PR with a proper body and stay on it until CI is green.",
  },
  {
    skill: "acreadiness-generate-instructions",
    text: "Write down what Copilot has to know about our monorepo, one file per area.",
  },
  {
    skill: "acreadiness-generate-instructions",
    text: "Our AGENTS.md is out of date, please write it anew with AgentRC.",
  },
  {
    skill: "impediment-prioritization",
    text: "Here are fourteen things from the retro that slow us down. What should be fixed first, by value and effort?",
  },
  {
    skill: "impediment-prioritization",
    text: "Put the risks of this register and their mitigations into an order with scores from one to ten.",
  },
  { skill: "wcag-audit-patterns", text: "Somebody threatens to sue us over ADA; what on our site violates level AA?" },
  { skill: "wcag-audit-patterns", text: "Go over this page for missing alt texts, poor contrast and form labels." },
  {
    skill: "changeset-validation",
    text: "Is a minor bump right for this branch, or does the .changeset file need changing?",
  },
  {
    skill: "gtm-positioning-strategy",
    text: "Buyers think we are the same as everybody else. How do we say what makes us different?",
  },
  { skill: "gtm-positioning-strategy", text: "Should we test a new headline before we do the whole rebrand?" },
  {
    skill: "skill-improver",
    text: "Have this skill reviewed again and again and fix what is found until it is good enough.",
  },
  {
    skill: "arduino-azure-iot-edge-integration",
    text: "My microcontroller with temperature sensors sits in a barn with bad internet; how does its telemetry get to IoT Hub over MQTT?",
  },
  {
    skill: "gtm-operating-cadence",
    text: "We grew to 120 people, are in meetings all day and nothing gets decided. Which ones do we need?",
  },
  {
    skill: "gtm-operating-cadence",
    text: "What belongs in the CEO's mail to all staff each week, and who owns which metric?",
  },
  {
    skill: "firebase-apk-scanner",
    text: "Look into this Android app: can anybody read its Firestore or sign up without permission?",
  },
  { skill: "convert-excel-to-md", text: "Here is budget.xlsx. Which department spent the most in March?" },
  { skill: "convert-excel-to-md", text: "Summarise all the spreadsheets in this folder." },
  {
    skill: "variant-analysis",
    text: "We fixed one integer overflow in the parser. Does the same mistake exist elsewhere in the code?",
  },
  {
    skill: "variant-analysis",
    text: "Generalise this Semgrep pattern step by step to find siblings of the vulnerability.",
  },
];
