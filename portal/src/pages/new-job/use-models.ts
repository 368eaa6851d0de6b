import { useQuery } from "@tanstack/react-query";
import { gpusQuery } from "@/api/queries";
import { type ModelFact, modelsOf } from "./model/models";

const NO_MODELS: ModelFact[] = [];

/** What GPUs the cluster has, by model. */
export function useModels(): ModelFact[] {
  return useQuery({ ...gpusQuery, select: modelsOf }).data ?? NO_MODELS;
}
