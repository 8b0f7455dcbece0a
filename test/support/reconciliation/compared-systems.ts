import { tmpdir } from 'node:os'
import { onTestFinished } from 'vitest'
import { databaseTarget } from '#adapters/targets/database/database.ts'
import { Passwords } from '#adapters/targets/database/password-hash.ts'
import { catalog } from '#catalog/catalog.ts'
import type { AccountLink, ComparedCounts, Difference } from '#features/reconciliation/plan/difference.ts'
import { compare } from '#features/reconciliation/read/compare.ts'
import { type ComparedSystems, openSystems } from '#features/reconciliation/read/systems.ts'
import type { InsertEntry } from '#identity/directory.ts'
import { silentLogger } from '#kernel/logger.ts'
import { buildScoped } from '#kernel/scope.ts'
import { userOf } from '#sdk/conformance/target-fixture.ts'
import { hasGroups, type LookupTarget, type Target, type TargetRequest } from '#sdk/target/target.ts'
import { memoryUserDirectory } from '#testing/databases/memory-database.ts'
import { leastCost } from '#testing/login/least-cost.ts'
import { loadText } from '#testing/modules/check-text.ts'
import { fakeModuleHost } from '#testing/modules/fake-module-host.ts'

export const quietRequest: TargetRequest = {
  workflow: { id: 'test', name: 'test' },
  idempotencyKey: 'test/1',
  requestor: 'test',
  params: {},
  log: silentLogger,
  audit() {},
}

/** Users in a database in memory, until the test ends. */
export function memoryTarget(): ReturnType<typeof databaseTarget> {
  const target = databaseTarget(memoryUserDirectory(), new Passwords(memoryUserDirectory('passwords'), leastCost))
  onTestFinished(() => target.close())
  return target
}

export interface Given {
  readonly source: Target
  readonly target: Target
  /** YAML of the spec, without source and target. */
  readonly spec: string
  /** YAML of `source`. */
  readonly from?: string
  /** YAML of the target's `targetAttributes`. */
  readonly targetAttributes?: string
  readonly links?: readonly AccountLink[]
  /** Of the virtual directory. */
  readonly entries?: readonly InsertEntry[]
}

/** The systems of a Reconciliation of a source and a target. */
export async function comparedSystems(given: Given): Promise<ComparedSystems> {
  const { source, target, spec, from = '{ target: people }', targetAttributes = '[]', links = [] } = given
  const { configuration, issues } = loadText(
    [
      'apiVersion: gatehouse.dev/v1\nkind: Target\nmetadata: { name: people }\nspec: { className: targets.Database }',
      `apiVersion: gatehouse.dev/v1\nkind: Target\nmetadata: { name: chat }\nspec: { className: targets.Database, targetAttributes: ${targetAttributes} }`,
      'apiVersion: gatehouse.dev/v1\nkind: Workflow\nmetadata: { name: work }\nspec: { tasks: [{ taskType: delete, target: chat }] }',
      `apiVersion: gatehouse.dev/v1\nkind: Reconciliation\nmetadata: { name: chat }\nspec:\n  source: ${from}\n  target: chat\n  workflow: work\n${spec.replace(/^/gm, '  ')}`,
    ].join('\n---\n'),
    catalog,
  )
  const config = configuration?.reconciliations.get('chat')
  if (configuration === undefined || config === undefined) throw new Error(JSON.stringify(issues))
  const host = fakeModuleHost({ targets: { people: source, chat: target }, entries: given.entries ?? [] })
  const { value, scope } = await buildScoped((opened) => openSystems(config, configuration, host, opened))
  onTestFinished(() => scope.close())
  return {
    ...value,
    folder: tmpdir(),
    log: silentLogger,
    links: async (people) => links.filter((link) => people.includes(link.source)),
    linksByTarget: async (accounts) =>
      links.filter((link) => link.target !== undefined && accounts.includes(link.target)),
  }
}

/** All parts of a comparison together. */
export async function compareWhole(systems: ComparedSystems, resumeAt?: string) {
  const differences: Difference[] = []
  const counts = { source: 0, target: 0, agree: 0 }
  for await (const part of compare(systems, resumeAt)) {
    differences.push(...part.differences)
    for (const name of Object.keys(counts) as (keyof ComparedCounts)[]) counts[name] += part.counts[name]
  }
  return { differences, counts }
}

/** Creates a user, with groups if the target has them. */
export async function addUser(
  target: Target,
  userID: string,
  attributes: Readonly<Record<string, readonly string[]>> = {},
  groups: readonly string[] = [],
): Promise<void> {
  const user = userOf(userID, attributes, hasGroups(target) ? groups : [])
  await target.createUser(user, Object.keys(attributes), quietRequest)
}

/** The id by which links name an account. */
export async function idOf(target: LookupTarget, login: string): Promise<string> {
  const user = await target.lookupUserByLogin(login)
  return (target.userIdIsLogin ? undefined : user?.id) ?? login
}

/** `kind login: reason` of each, sorted. */
export const linesOf = (differences: readonly Difference[]): string[] =>
  differences
    .map(({ kind, action, source, target, rule }) => {
      const names = [source?.login ?? '–', target?.login ?? '–'].join(' → ')
      return `${kind} ${names}${rule === undefined ? '' : ` by ${rule}`}: ${action}`
    })
    .sort()
