import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./design/base.css";
import { whenSignedOut } from "./api/client";
import { ApiError } from "./api/error";
import { watchSession } from "./api/forget";
import { takeSessionKey } from "./api/key";
import { sessionQuery } from "./api/session";
import { makeRouter } from "./app/routes";

takeSessionKey(location, history);

const client = new QueryClient({
  queryCache: new QueryCache(),
  defaultOptions: {
    queries: {
      // Events say when something changed; the rest is a net below them.
      staleTime: 15_000,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: false,
      refetchOnReconnect: true,
      retry: (tries, error) =>
        tries < 2 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
      retryDelay: (tries) => 500 * 2 ** tries,
    },
    mutations: { retry: false },
  },
});

whenSignedOut(() => {
  if (client.getQueryData(sessionQuery.queryKey) !== null)
    client.setQueryData(sessionQuery.queryKey, null);
});

watchSession(client);

const place = document.getElementById("root");
if (place)
  createRoot(place).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={makeRouter(client)} />
      </QueryClientProvider>
    </StrictMode>,
  );
