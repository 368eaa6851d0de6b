/** The components of the portal. Pages use these and nothing of their own beyond layout. */
export {
  AnchorButton,
  Button,
  type ButtonProps,
  Kbd,
  LinkButton,
  TextLink,
} from "./Button";
export { berth, CommandBar, CommandLine, CopyButton, copyText, shell } from "./CommandBar";
export { Drawer, neighbour, typing } from "./Drawer";
export {
  Checkbox,
  Field,
  Input,
  type Option,
  SearchInput,
  Segmented,
  Select,
  Switch,
  Textarea,
} from "./Field";
export {
  Bar,
  type BarPart,
  Cut,
  Figure,
  Gpu,
  Money,
  Mono,
  None,
  Span,
  Stat,
  Stats,
  Time,
} from "./Figures";
export { Chip, type Filter, Filters } from "./Filters";
export { Confirm, Dialog, Menu, type MenuItem, Popover } from "./Overlay";
export { type Crumb, Page, PageHeader } from "./Page";
export { StateBadge, StateGlyph, stateOf } from "./State";
export {
  EmptyState,
  ErrorNote,
  ErrorState,
  Facts,
  Note,
  Panel,
  Skeleton,
} from "./States";
export { type Column, sorted, Table, type TableProps } from "./Table";
export { type Tab, Tabs } from "./Tabs";
export { toast } from "./Toast";
export { Tooltip } from "./Tooltip";
