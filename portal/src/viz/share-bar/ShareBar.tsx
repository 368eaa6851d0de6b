// Used against quota and fair share, with what is borrowed and lent.

import { memo, useId } from "react";
import { Patterns } from "../common/parts";
import { number, type Share, shareParts, shareWords } from "./layout";
import "./share-bar.css";

export type { Share } from "./layout";

export interface ShareBarProps extends Share {
  /** "GPUs" where left out. */
  unit?: string | undefined;
  /** What the whole width stands for, so that the bars of a list compare. */
  most?: number | undefined;
  /** The bar alone, for tables; its words are still read aloud. */
  bare?: boolean | undefined;
}

const TALL = 12;

export const ShareBar = memo(function ShareBar(props: ShareBarProps) {
  const { unit = "GPUs", most, bare } = props;
  const id = useId();
  const parts = shareParts(props, most);
  const percent = (n: number) => `${(n / parts.scale) * 100}%`;
  const words = shareWords(props, unit);
  return (
    <div className="viz-share">
      <svg className="viz-share-bar" width="100%" height={TALL + 8} role="img" aria-label={words}>
        <title>{words}</title>
        <rect className="viz-share-quota" y="4" width={percent(props.quota)} height={TALL} />
        <rect className="viz-share-own" y="4" width={percent(parts.own)} height={TALL} />
        {parts.lent > 0 && (
          <g className="viz-share-lent">
            <Patterns id={`${id}l`} />
            <rect
              fill={`url(#${id}l-dots)`}
              x={percent(parts.own + parts.free)}
              y="4"
              width={percent(parts.lent)}
              height={TALL}
            />
          </g>
        )}
        {parts.borrowed > 0 && (
          <g className="viz-share-borrowed">
            <Patterns id={id} />
            <rect x={percent(props.quota)} y="4" width={percent(parts.borrowed)} height={TALL} />
            <rect
              fill={`url(#${id}-hatch)`}
              x={percent(props.quota)}
              y="4"
              width={percent(parts.borrowed)}
              height={TALL}
            />
          </g>
        )}
        <line
          className="viz-share-edge"
          x1={percent(props.quota)}
          x2={percent(props.quota)}
          y1="2"
          y2={TALL + 6}
        />
        {props.fair !== null && props.fair !== undefined && (
          <svg className="viz-share-fair" x={percent(props.fair)} y="0" overflow="visible">
            <path d="M-4,0 h8 l-4,5 z" />
            <line x1="0" x2="0" y1="4" y2={TALL + 4} />
          </svg>
        )}
      </svg>
      {!bare && (
        <div className="viz-share-words" aria-hidden="true">
          <span>
            <b>{number(props.used)}</b>{" "}
            {props.quota > 0 ? `of ${number(props.quota)} ${unit}` : `${unit}, no quota of its own`}
          </span>
          {parts.borrowed > 0 && <span>borrows {number(parts.borrowed)}</span>}
          {parts.lent > 0 && <span>lends {number(parts.lent)}</span>}
          {props.fair !== null && props.fair !== undefined && (
            <span className="viz-share-quiet">▾ fair share {number(props.fair)}</span>
          )}
        </div>
      )}
    </div>
  );
});

/** What the marks of the bars mean: once for a list. */
export function ShareKey() {
  const id = useId();
  return (
    <ul className="viz-legend viz-frame viz-share-key">
      <li>
        <svg width="18" height="10" aria-hidden="true">
          <rect className="viz-share-own" width="18" height="10" />
        </svg>
        used of its quota
      </li>
      <li>
        <svg width="18" height="10" aria-hidden="true">
          <rect className="viz-share-quota" width="18" height="10" />
        </svg>
        unused
      </li>
      <li>
        <svg className="viz-share-borrowed" width="18" height="10" aria-hidden="true">
          <Patterns id={id} />
          <rect width="18" height="10" />
          <rect fill={`url(#${id}-hatch)`} width="18" height="10" />
        </svg>
        borrowed
      </li>
      <li>
        <svg className="viz-share-lent" width="18" height="10" aria-hidden="true">
          <Patterns id={`${id}l`} />
          <rect className="viz-share-quota" width="18" height="10" />
          <rect fill={`url(#${id}l-dots)`} width="18" height="10" />
        </svg>
        lent
      </li>
      <li>
        <svg className="viz-share-fair" width="10" height="10" aria-hidden="true">
          <path d="M1,1 h8 l-4,5 z" />
        </svg>
        fair share
      </li>
    </ul>
  );
}
