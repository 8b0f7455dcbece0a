import { createContext, type ReactNode, useContext, useMemo } from 'react'
import type { PersonNames } from '#contract/person-names.ts'
import { isolated } from '../app/isolated.ts'

/** Names a user by login; `known` is the display name where the answer has it elsewhere. */
export type NameOf = (login: string, known?: string) => string

interface Named {
  readonly names?: PersonNames
}

/**
 * Names users as the answers say: by display name, or by login if there is none. The login follows where it identifies,
 * which is everywhere with `withLogin`, and otherwise where two users have the same name.
 */
export function namesIn(answers: readonly Named[], withLogin = false): NameOf {
  const names = new Map(answers.flatMap((answer) => Object.entries(answer.names ?? {})))
  const logins = new Map<string, Set<string>>()
  for (const [login, name] of names) {
    const key = name.toLowerCase()
    logins.set(key, (logins.get(key) ?? new Set()).add(login.toLowerCase()))
  }
  return (login, known) => {
    const name = known ?? names.get(login)
    if (name === undefined || name === login) return login
    const others = logins.get(name.toLowerCase())
    const isShared = others !== undefined && [...others].some((other) => other !== login.toLowerCase())
    return withLogin || isShared ? `${isolated(name)} (${isolated(login)})` : name
  }
}

const Context = createContext<NameOf>((login, known) => known ?? login)

interface NamesProps {
  /** The answers that the part below shows. */
  readonly of: readonly Named[] | undefined
  /** For administrators, who identify users by login. */
  readonly withLogin?: boolean
  readonly children: ReactNode
}

/** Lets the part below name the users of these answers. */
export function Names({ of, withLogin = false, children }: NamesProps) {
  const nameOf = useMemo(() => namesIn(of ?? [], withLogin), [of, withLogin])
  return <Context value={nameOf}>{children}</Context>
}

export const useNames = (): NameOf => useContext(Context)

/** A user in a cell of a table. */
export function PersonName({ login }: { readonly login: string }) {
  return isolated(useNames()(login))
}
