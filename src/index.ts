// Define
export { defineWorkflow } from "./workflow/define.ts";
export type { AnyWorkflow, Workflow, WorkflowInput } from "./workflow/define.ts";
export type {
  Approvals,
  ChildResult,
  GuardedMove,
  GuardedOutput,
  MapResult,
  MapRule,
  OutputGuard,
  PlanRule,
  ReactRule,
  Step,
  StepContext,
  StepResult,
} from "./workflow/step.ts";
export { planField } from "./workflow/plan.ts";
export type { Plan } from "./workflow/plan.ts";
export type { SensitiveData } from "./workflow/sensitive.ts";
export { defineTool } from "./workflow/tool.ts";
export type {
  Approval,
  ApprovalRule,
  InterceptContext,
  Interceptor,
  Reconciled,
  RetryRule,
  Tool,
  ToolContext,
  ToolDefinition,
  Sensitive,
} from "./workflow/tool.ts";
export type { Artifact, ArtifactInfo, ArtifactReader } from "./workflow/artifact.ts";
export { ToolError } from "./tools/tool-error.ts";
export type { ToolErrorOptions } from "./tools/tool-error.ts";
export { fromLangChain } from "./tools/langchain.ts";
export type { Declaration as ToolDeclaration, LangChainTool } from "./tools/langchain.ts";
export { mcpTools } from "./tools/mcp.ts";
export type { McpSource, McpToolsOptions } from "./tools/mcp.ts";
export { artifactTools } from "./tools/artifacts.ts";
export { todoTools } from "./tools/todo.ts";
export { fileTools } from "./tools/files/tools.ts";
export type { FileToolsOptions } from "./tools/files/tools.ts";
export { resourceField } from "./state/resources.ts";
export type { Resource } from "./state/resources.ts";
export { todoField } from "./state/todos.ts";
export type { Todo } from "./state/todos.ts";
export { isOpenDatabase } from "./internal/open-databases.ts";
export { allowPaths, forbidCommands } from "./tools/interceptors.ts";
export type { AllowPathsOptions, ForbidCommandsOptions } from "./tools/interceptors.ts";
export type { Migration, Migrations } from "./workflow/migrations.ts";
export type { Fault } from "./workflow/fault.ts";
export { field } from "./state/fields.ts";
export type { Field, Fields, Frozen, Patch, PatchOf, State, StateOf } from "./state/fields.ts";
export type { CrossFieldCheck, Refusal } from "./state/patch.ts";

// Skills
export { adviseOnSkills } from "./skills/advise.ts";
export { chooseSkills } from "./skills/choose.ts";
export type { ChooseOptions } from "./skills/choose.ts";
export type { Execute, NewMemory as SkillMemory, SkillContext, SkillResult } from "./skills/execute.ts";
export { loadSkills } from "./skills/load.ts";
export type { LoadedSkills } from "./skills/load.ts";
export type { Skill, SkillImplementation, SkillParameter, SkillProblem } from "./skills/skill.ts";
export { bodyOf, catalogue, resourceOf, resourcesOf } from "./skills/stages.ts";
export { skillTools } from "./skills/tools.ts";
export type { SkillToolDeclaration, SkillToolsOptions } from "./skills/tools.ts";
export { watchSkills } from "./skills/watch.ts";
export type { SkillsChange, SkillsWatch, WatchOptions } from "./skills/watch.ts";
export { workflowOf } from "./skills/workflow.ts";
export type { SkillStep } from "./skills/workflow.ts";

// Roles
export { loadRole } from "./roles/load.ts";
export { parseRole } from "./roles/parse.ts";
export type { RoleFault } from "./roles/parse.ts";
export type { Role } from "./workflow/role.ts";

// Run
export { answer, compile } from "./compile/compile.ts";
export type { CompileOptions, Verdict } from "./compile/compile.ts";
export type { ConsentOptions } from "./compile/consent.ts";
export { signedIn } from "./compile/identity.ts";
export type { Override } from "./compile/override.ts";
export { propose } from "./compile/propose.ts";
export type { OutsideRun, ProposedDecision } from "./compile/propose.ts";
export { diagnose } from "./compile/doctor.ts";
export type { Patient, Trouble } from "./compile/doctor.ts";
export { wakeDue } from "./compile/wake-due.ts";
export { WorkflowGraph } from "./compile/workflow-graph.ts";
export type { WorkflowResult, WorkflowValues } from "./compile/workflow-graph.ts";
export { describeTask } from "./compile/describe.ts";
export type { TaskDescription, WaitingRequest } from "./compile/describe.ts";
export { briefTask } from "./compile/brief-task.ts";
export { renderBrief } from "./view/brief.ts";
export type { Brief, BriefRequest } from "./view/brief.ts";
export type { WorkItem } from "./view/work.ts";
export { modelFromEnvironment } from "./decision/environment.ts";
export type { OutputMode } from "./decision/providers.ts";
export type { SchemaScope, ToolArguments } from "./decision/schema.ts";
export { sqliteStore } from "./storage/sqlite/sqlite.ts";
export { openStore } from "./storage/open-store.ts";
export { postgresStore } from "./storage/postgres/postgres.ts";
export type { PostgresOptions } from "./storage/postgres/postgres.ts";
export type { SqliteOptions } from "./storage/sqlite/sqlite.ts";
export type { TaskEvent, TaskOwner, TaskRow, TaskStore } from "./compile/store.ts";
export type { PauseValue } from "./people/pause.ts";
export type { Request } from "./people/requests.ts";
export type { Call, CallResult, Execution, Expectation, Observation, TaskStatus, Usage } from "./state/execution.ts";

// Run many
export { runBatch } from "./batch/batch.ts";
export type { BatchEvent, BatchOptions, BatchTask, Outcome, Settled } from "./batch/batch.ts";
export type { TimeLimits } from "./batch/attempt.ts";

// Remember across tasks
export { Memories } from "./memory/memories.ts";
export type { MemoriesOptions, MemoryTask } from "./memory/memories.ts";
export { Memory } from "./memory/memory.ts";
export type { ListOptions, RecallOptions, Remembered, RememberOptions } from "./memory/memory.ts";
export type { MemoryOwner } from "./memory/owner.ts";
export type { MemoryItem, NewMemory, RecalledMemory } from "./memory/value.ts";
export type { Memorable, MemoryType } from "./workflow/memorable.ts";
export { memoryTools } from "./memory/tools.ts";
export { condense } from "./memory/condense.ts";
export { summariseWith } from "./memory/summarise.ts";
export type { Summarise } from "./memory/summarise.ts";
export type { MemoryList, MemoryQuery, MemoryStore } from "./memory/store.ts";
export type { MemoryStoreOptions, SqlMemoryStore } from "./storage/memory-store.ts";

// Look without running: pure functions over a workflow and a task's state
export { moves, nextStep, openMoves } from "./workflow/next-step.ts";
export type { Move } from "./workflow/next-step.ts";
export type { Snapshot } from "./workflow/define.ts";
export { renderView, viewTokens } from "./view/render.ts";
export { statusBar } from "./view/status-bar.ts";
export type { StatusBar } from "./view/status-bar.ts";
export type { StatusBarInput, StatusBarOptions } from "./view/status-bar/input.ts";
export { chooseBarMode } from "./view/status-bar/mode.ts";
export type { BarModeChoice } from "./view/status-bar/mode.ts";
export type { Section, View } from "./view/render.ts";
export { CACHE_RULES } from "./view/cache-rules.ts";
export type { CacheRule, ProviderName } from "./view/cache-rules.ts";
export type { Policy, ViewOptions } from "./view/options.ts";

// Errors
export { isWorkflowError, WorkflowError } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
