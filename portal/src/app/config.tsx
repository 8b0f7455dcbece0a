import { createContext, type ReactNode, use } from 'react'
import type { MainConfig, UserData } from '#features/portal/contract/main.ts'

export interface Person {
  readonly login: string
  readonly displayName: string
}

interface Known {
  readonly config: MainConfig
  readonly person: Person
}

const Context = createContext<Known | undefined>(undefined)

function useKnown(): Known {
  const known = use(Context)
  if (known === undefined) throw new Error('there is no configuration around this component')
  return known
}

export const useConfig = (): MainConfig => useKnown().config

/** The signed-in user. */
export const usePerson = (): Person => useKnown().person

export function ConfigProvider({ children, ...known }: Known & { readonly children: ReactNode }) {
  return <Context value={known}>{children}</Context>
}

export function personOf(user: UserData, config: MainConfig): Person {
  const value = (name: string): string | undefined =>
    user.attributes.find((attribute) => attribute.name === name)?.values[0]
  const login = user.uid ?? value(config.uidAttributeName) ?? user.dn
  return { login, displayName: value(config.displayNameAttribute) ?? login }
}
