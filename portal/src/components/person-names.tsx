import { createContext, type ReactNode, useContext, useMemo } from 'react'
import type { PersonNames } from '#features/portal/contract/person-names.ts'
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
    const key = looseName(name)
    logins.set(key, (logins.get(key) ?? new Set()).add(login.toLowerCase()))
  }
  return (login, known) => {
    const name = known ?? names.get(login)
    if (name === undefined || name === login) return login
    const others = logins.get(looseName(name))
    const isShared = others !== undefined && [...others].some((other) => other !== login.toLowerCase())
    return withLogin || isShared ? `${isolated(name)} (${isolated(login)})` : name
  }
}

/** The same for names that look the same: invisible characters, spaces and letter case do not distinguish users. */
const looseName = (name: string): string =>
  name
    .normalize('NFKC')
    .replace(/[\p{C}\p{Z}]+/gu, '')
    .toLowerCase()

const Context = createContext<NameOf>((login, known) => known ?? login)

interface NamesProps {
  /** The answers that the part below shows. */
  readonly of: readonly Named[] | undefined
  /** For users who decide or change something: a display name may be that of another user, whom the page does not show. */
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
