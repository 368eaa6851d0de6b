import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  retainSearchParams,
  useMatches,
  useNavigate,
} from "@tanstack/react-router";
import { useCallback } from "react";
import { Toasts } from "@/design/Toast";
import { TooltipProvider } from "@/design/Tooltip";
import { parseSearch, type Raw, str, stringifySearch } from "@/lib/search";
import { adminSearch } from "@/pages/admin/search";
import { clusterSearch } from "@/pages/cluster/search";
import { costsSearch } from "@/pages/costs/search";
import { experimentsSearch, runsSearch } from "@/pages/experiments/search";
import { jobSearch } from "@/pages/job/search";
import { jobsSearch } from "@/pages/jobs/search";
import { lineageSearch } from "@/pages/lineage/search";
import { modelSearch } from "@/pages/model/search";
import { modelsSearch } from "@/pages/models/search";
import { newJobSearch } from "@/pages/new-job/search";
import { queueSearch } from "@/pages/queue/search";
import { runSearch } from "@/pages/run/search";
import { PageError, PageNotFound, PagePending } from "./Fallbacks";
import { Frame } from "./Frame";
import { Gate } from "./Gate";
import { SignInPage, signInSearch } from "./SignInPage";

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** Stands alone, without the frame. `open` ones ask nobody who they are. */
    bare?: "open" | "signed-in";
  }
  interface Register {
    router: typeof router;
  }
}

const root = createRootRouteWithContext<{ client: QueryClient }>()({
  validateSearch: (raw: Raw): { team?: string } => {
    const team = str(raw, "team");
    return team ? { team } : {};
  },
  search: { middlewares: [retainSearchParams(["team"])] },
  component: Root,
  notFoundComponent: PageNotFound,
});

function Root() {
  const bare = useMatches({ select: (all) => all.map((m) => m.staticData.bare).find(Boolean) });
  const page = bare ? <Outlet /> : <Frame />;
  return (
    <TooltipProvider>
      {bare === "open" ? page : <Gate>{page}</Gate>}
      <Toasts />
    </TooltipProvider>
  );
}

const at = <P extends string>(path: P) => ({ getParentRoute: () => root, path }) as const;

const home = createRoute({
  ...at("/"),
  component: lazyRouteComponent(() => import("@/pages/home")),
});
const jobs = createRoute({
  ...at("/jobs"),
  validateSearch: jobsSearch,
  component: lazyRouteComponent(() => import("@/pages/jobs")),
});
const job = createRoute({
  ...at("/jobs/$job"),
  validateSearch: jobSearch,
  component: lazyRouteComponent(() => import("@/pages/job")),
});
const newJob = createRoute({
  ...at("/new"),
  validateSearch: newJobSearch,
  component: lazyRouteComponent(() => import("@/pages/new-job")),
});
const queue = createRoute({
  ...at("/queue"),
  validateSearch: queueSearch,
  component: lazyRouteComponent(() => import("@/pages/queue")),
});
const cluster = createRoute({
  ...at("/cluster"),
  validateSearch: clusterSearch,
  component: lazyRouteComponent(() => import("@/pages/cluster")),
});
const costs = createRoute({
  ...at("/costs"),
  validateSearch: costsSearch,
  component: lazyRouteComponent(() => import("@/pages/costs")),
});
const experiments = createRoute({
  ...at("/experiments"),
  validateSearch: experimentsSearch,
  component: lazyRouteComponent(() => import("@/pages/experiments")),
});
const experiment = createRoute({
  ...at("/experiments/$experiment"),
  validateSearch: runsSearch,
  component: lazyRouteComponent(() => import("@/pages/experiments/runs")),
});
const run = createRoute({
  ...at("/runs/$run"),
  validateSearch: runSearch,
  component: lazyRouteComponent(() => import("@/pages/run")),
});
const models = createRoute({
  ...at("/models"),
  validateSearch: modelsSearch,
  component: lazyRouteComponent(() => import("@/pages/models")),
});
const model = createRoute({
  ...at("/models/$model"),
  validateSearch: modelSearch,
  component: lazyRouteComponent(() => import("@/pages/model")),
});
const lineage = createRoute({
  ...at("/lineage"),
  validateSearch: lineageSearch,
  component: lazyRouteComponent(() => import("@/pages/lineage")),
});
const admin = createRoute({
  ...at("/admin"),
  validateSearch: adminSearch,
  component: lazyRouteComponent(() => import("@/pages/admin")),
});
const help = createRoute({
  ...at("/help/$code"),
  component: lazyRouteComponent(() => import("@/pages/help")),
});
const device = createRoute({
  ...at("/device"),
  validateSearch: (raw: Raw) => ({ code: str(raw, "code") }),
  staticData: { bare: "signed-in" },
  component: lazyRouteComponent(() => import("@/pages/device")),
});
const signIn = createRoute({
  ...at("/sign-in"),
  validateSearch: signInSearch,
  staticData: { bare: "open" },
  component: SignInPage,
});
/** All components in all states, for those who build; `npm run dev` has it and the build does not. */
const gallery = import.meta.env.DEV
  ? createRoute({
      ...at("/gallery"),
      component: lazyRouteComponent(() => import("@/pages/gallery")),
    })
  : undefined;

const pages = [
  home,
  jobs,
  job,
  newJob,
  queue,
  cluster,
  costs,
  experiments,
  experiment,
  run,
  models,
  model,
  lineage,
  admin,
  help,
  device,
  signIn,
] as const;
const tree = root.addChildren(gallery ? [...pages, gallery] : [...pages]);

export function makeRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree as ReturnType<typeof root.addChildren<typeof pages>>,
    context: { client },
    parseSearch,
    stringifySearch,
    defaultPreload: "intent",
    defaultPendingMs: 200,
    defaultPendingComponent: PagePending,
    defaultErrorComponent: PageError,
    defaultNotFoundComponent: PageNotFound,
    scrollRestoration: false,
  });
}

// Only its type is used: links are checked against the routes that there are.
declare const router: ReturnType<typeof makeRouter>;

/** To an address that is known only at run time. Where it is written out, use Link and its types. */
export function useGo(): (to: string, search?: Record<string, unknown>) => void {
  const navigate = useNavigate();
  return useCallback(
    (to, search) => void navigate({ to, search: search ?? {} } as never),
    [navigate],
  );
}
