import { Fragment, type ReactNode } from 'react'
import { isolated } from '../app/isolated.ts'

export interface Fact {
  /** Needed if two have the same name. */
  readonly key?: string
  readonly name: string
  readonly value: ReactNode
}

/** Names and values. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl className="facts">
      {facts.map(({ key, name, value }) => (
        <Fragment key={key ?? name}>
          <dt>{isolated(name)}</dt>
          <dd>{typeof value === 'string' ? isolated(value) : value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}
