import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import type { PlanState } from '#features/reconciliation/contract/plan-words.ts'
import { type PlanProgress, ReconciliationPlans } from '#features/reconciliation/service/plans.ts'
import type { PlanRow } from '#features/reconciliation/store/plan-record.ts'
import type { User } from '#identity/user.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLogger } from '#kernel/logger.ts'
import { loadAuditKeys } from '#keys/audit-keys.ts'
import { openStorage, type Storage } from '#server/composition/stores.ts'
import { createUser, user } from '#testing/databases/directory-writes.ts'
import { until } from '#testing/gateway/gateway-process.ts'

/** A user as both kinds of systems have it. */
export interface Person {
  readonly mail?: string
  readonly active?: string
  readonly type?: string
}

/** A system of a story, which the test reads and writes without the gateway. */
export interface StorySystem {
  /** Its Target object. */
  readonly target: string
  add(people: Readonly<Record<string, Person>>): Promise<void>
  /** By login. */
  read(): Promise<Readonly<Record<string, Person>>>
}

export const storyFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-reconciliation-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The gateway and the test seal the audit with the same key. */
export const storyKey = { GATEHOUSE_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') }

/** The database of the gateway, opened as a command does, before the gateway starts and while it runs. */
export async function openGatewayData(dataFolder: string): Promise<Storage> {
  const auditKeys = await loadAuditKeys({ environment: storyKey, dataFolder }, 'command')
  const storage = openStorage({ dataFolder, clock: systemClock, log: silentLogger, auditKeys })
  onTestFinished(() => storage.close())
  return storage
}

const attributeNames = ['mail', 'active', 'type'] as const

/** A database target, in the gateway's own database. */
export function embeddedSystem(name: string, storage: Storage): StorySystem {
  const use = async <T>(work: (directory: ReturnType<Storage['userDirectory']>) => Promise<T>): Promise<T> => {
    const directory = storage.userDirectory({ name })
    try {
      return await work(directory)
    } finally {
      await directory.close()
    }
  }
  const shown = ({ userID, attributes }: User): [string, Person] => [
    userID,
    Object.fromEntries(attributeNames.flatMap((key) => (attributes.has(key) ? [[key, attributes.first(key)]] : []))),
  ]
  return {
    target: `{ className: targets.Database, params: [] }`,
    add: (people) =>
      use(async (directory) => {
        for (const [login, person] of Object.entries(people)) {
          const values = Object.entries(person).map(([key, value]): [string, string[]] => [key, [String(value)]])
          await createUser(directory, user(login, Object.fromEntries(values)))
        }
      }),
    read: () =>
      use(async (directory) => {
        const found: User[] = []
        for (let after: string | undefined; ; ) {
          const page = await directory.searchUsers({ offset: 0, limit: 500, after })
          found.push(...page.items)
          after = page.next
          if (after === undefined) return Object.fromEntries(found.map(shown))
        }
      }),
  }
}

/** A table in a file of its own. */
export function tableSystem(file: string): StorySystem & { readonly database: DatabaseSync } {
  const database = new DatabaseSync(file)
  onTestFinished(() => database.close())
  database.exec(`pragma journal_mode = wal; pragma busy_timeout = 5000;
    create table persons (id integer primary key autoincrement, login text not null unique, mail text, active text, type text)`)
  const params = [
    ['url', `sqlite:${file}`],
    ['userTable', 'persons'],
    ['userName', 'login'],
    ['userPrimaryKey', 'id'],
    ...attributeNames.map((name) => [`column.${name}`, name]),
  ].map(([name, value]) => ({ name, value }))
  return {
    database,
    target: JSON.stringify({ className: 'targets.Sql', params }),
    add: async (people) => {
      const insert = database.prepare('insert into persons (login, mail, active, type) values (?, ?, ?, ?)')
      database.exec('begin')
      for (const [login, { mail, active, type }] of Object.entries(people)) {
        insert.run(login, mail ?? null, active ?? null, type ?? null)
      }
      database.exec('commit')
    },
    read: async () => {
      const rows = database.prepare('select login, mail, active, type from persons').all()
      return Object.fromEntries(
        rows.map(({ login, ...values }) => [
          String(login),
          Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null)),
        ]),
      )
    },
  }
}

/** Writes the configuration of a gateway that reconciles `people` with `chat`; returns its folder. */
export function writeStoryConfig(
  folder: string,
  { source, target, more }: { readonly source: StorySystem; readonly target: StorySystem; readonly more: string },
): string {
  const config = join(folder, 'config')
  mkdirSync(config, { recursive: true })
  const kind = (name: string, spec: string) =>
    `apiVersion: openunison.tremolo.io/v1\nkind: Target\nmetadata: { name: ${name} }\nspec: ${spec}\n---\n`
  writeFileSync(
    join(config, 'gateway.yaml'),
    `${kind('people', source.target)}${kind('chat', target.target)}${workflows}${more}`,
  )
  return config
}

const workflows = `apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: chat-join }
spec:
  tasks:
    - { taskType: provision, target: chat, sync: true }
---
apiVersion: openunison.tremolo.io/v1
kind: Workflow
metadata: { name: chat-leave }
spec:
  tasks:
    - { taskType: addAttribute, name: active, value: "false" }
    - { taskType: provision, target: chat, sync: true, attributes: [active] }
---
`

/** What a person does with plans, on the database of a running gateway. */
export class PlanDesk {
  readonly plans: ReconciliationPlans
  readonly #by = { login: 'Grace' }

  constructor({ reconciliations: store, accountLinks: links }: Storage) {
    this.plans = new ReconciliationPlans({ store, links, clock: systemClock })
  }

  async request(name: string): Promise<string> {
    return (await this.plans.request(name, { by: this.#by })).plan.id
  }

  /** Waits for the plan to reach one of the states. */
  async wait(id: string, ...states: readonly PlanState[]): Promise<PlanProgress> {
    let found: PlanProgress | undefined
    await until(async () => {
      found = await this.plans.get(id)
      return found !== undefined && states.includes(found.plan.state)
    }, 120_000).catch((error: unknown) => {
      throw new Error(`the plan is ${JSON.stringify(found)}`, { cause: error })
    })
    if (found === undefined) throw new Error('no plan')
    return found
  }

  async plan(name: string): Promise<PlanProgress> {
    return await this.wait(await this.request(name), 'planned', 'stopped', 'failed')
  }

  async apply(id: string): Promise<PlanProgress> {
    await this.plans.approve(id, { by: this.#by })
    return await this.wait(id, 'applied', 'stopped', 'failed')
  }

  resume(id: string): Promise<unknown> {
    return this.plans.resume(id, { by: this.#by })
  }

  link(reconciliation: string, source: string, target: string): Promise<unknown> {
    return this.plans.link({ reconciliation, source, target, by: this.#by })
  }

  rows(id: string): Promise<readonly PlanRow[]> {
    return this.plans.rows(id, { limit: 500 })
  }

  /** `kind person>account action state`, sorted. */
  async lines(id: string): Promise<string[]> {
    return (await this.rows(id))
      .map(({ difference: { kind, source, target, action }, state }) =>
        [kind, `${source?.login ?? ''}>${target?.login ?? ''}`, action, state].join(' '),
      )
      .sort()
  }
}
