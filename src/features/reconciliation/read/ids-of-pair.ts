import { findAccount } from './people-source.ts'
import type { ComparedSystems } from './systems.ts'

/** Each by id or login. */
interface Pair {
  readonly source: string
  readonly target?: string | undefined
}

/** The names that links have for a person and an account, as the systems have them now; absent where one has none. */
export async function idsOfPair({ source: people, target: accounts }: ComparedSystems, { source, target }: Pair) {
  const [byId, byLogin, accountById, accountByLogin] = await Promise.all([
    people.hasIds ? people.find({ id: source, login: source }) : undefined,
    people.find({ login: source }),
    ...(target === undefined
      ? []
      : [
          accounts.userIdIsLogin ? undefined : findAccount(accounts, { id: target, login: target }),
          findAccount(accounts, { login: target }),
        ]),
  ])
  const person = byId ?? byLogin
  const account = accountById ?? accountByLogin
  return {
    source: person && (people.hasIds ? (person.id ?? person.userID) : person.userID),
    target: account && (accounts.userIdIsLogin ? account.userID : (account.id ?? account.userID)),
  }
}
