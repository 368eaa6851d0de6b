import type { components, paths } from "./schema";

export type { paths };

/** What the query of a GET takes. */
export type QueryOf<P extends keyof paths> = paths[P] extends {
  get: { parameters: { query?: infer Q } };
}
  ? NonNullable<Q>
  : never;

type S = components["schemas"];
export type Job = S["Job"];
export type JobState = S["JobState"];
export type JobKind = S["JobKind"];
export type JobList = S["JobList"];
export type IncompleteGang = S["IncompleteGang"];
export type Attempt = S["Attempt"];
export type Why = S["Why"];
export type Blocker = S["Blocker"];
export type Sooner = S["Sooner"];
export type Plan = S["Plan"];
export type Queue = S["Queue"];
export type Share = S["Share"];
export type Gpu = S["Gpu"];
export type Node = S["Node"];
export type Budget = S["Budget"];
export type CostReport = S["CostReport"];
export type CostRow = S["CostRow"];
export type CostKey = S["CostKey"];
export type JobFigures = S["JobFigures"];
export type NodeFigures = S["NodeFigures"];
export type AuditRow = S["AuditRow"];
export type Me = S["Me"];
export type Role = S["Role"];
export type Scope = S["Scope"];
export type Token = S["Token"];
export type User = S["User"];
export type Team = S["Team"];
export type Member = S["Member"];
export type Project = S["Project"];
export type Secret = S["Secret"];
export type Volume = S["Volume"];
export type Template = S["Template"];
export type Schedule = S["Schedule"];
export type Policy = S["Policy"];
export type Diff = S["Diff"];
export type Change = S["Change"];
export type Problem = S["Problem"];
export type FieldError = S["FieldError"];
export type LogChunk = S["LogChunk"];
export type JobSubmitted = S["JobSubmitted"];
export type Event = S["Event"];
export type Lineage = S["Lineage"];
export type LineageDetails = S["LineageDetails"];
export type LineageKind = S["LineageKind"];
export type LineageLink = S["LineageLink"];
export type LineageNode = S["LineageNode"];
export type Recipe = S["Recipe"];
export type RecipeDifference = S["RecipeDifference"];
export type JobChange = S["JobChange"];
export type JobClone = S["JobClone"];
export type JobRef = S["JobRef"];
export type Timeline = S["Timeline"];
export type StopPreview = S["StopPreview"];
export type DrainPreview = S["DrainPreview"];
export type AtRisk = S["AtRisk"];
export type LogMatch = S["LogMatch"];
export type JobFile = S["JobFile"];
export type LeaseList = S["LeaseList"];
export type CostSeries = S["CostSeries"];
export type CostLine = S["CostLine"];
export type ConfigEntry = S["ConfigEntry"];
export type Session = S["Session"];
export type OpenSession = S["OpenSession"];
