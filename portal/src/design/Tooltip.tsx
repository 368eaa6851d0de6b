import { Tooltip as Radix } from "radix-ui";
import type { ReactNode } from "react";

export const TooltipProvider = ({ children }: { children: ReactNode }) => (
  <Radix.Provider delayDuration={350} skipDelayDuration={150}>
    {children}
  </Radix.Provider>
);

/** Words for what is pointed at or focused. Nothing that is needed stands only here. */
export function Tooltip({
  text,
  children,
  side = "top",
}: {
  text: ReactNode;
  /** One element that takes a ref. */
  children: ReactNode;
  side?: "top" | "bottom" | "left" | "right";
}) {
  if (!text) return children;
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          side={side}
          sideOffset={6}
          collisionPadding={8}
          className="z-50 max-w-80 rounded-md bg-raised px-2 py-1 text-12 text-fg shadow-float wrap-anywhere"
        >
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
