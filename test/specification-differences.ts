import { readFileSync, writeFileSync } from 'node:fs'

/** What Gatehouse does differently from the specification on purpose. */
interface Difference {
  readonly section: string
  /** In our own words. */
  readonly said: string
  readonly done: string
  readonly reason: string
}

const differences: readonly Difference[] = [
  {
    section: '2.1',
    said: '`regEx` is a regular expression',
    done: 'RE2 syntax, without back-references and look-around; `check` refuses others',
    reason: 'Matching takes a bounded time for every input.',
  },
  {
    section: '2.2',
    said: "`groups.value` is the group's identifier",
    done: 'Where a user and a group could have one id, such as names, the id of a group is `group:<id>`, in `groups`, `/Groups` and `$ref` alike. A path and `id eq` also accept it without the prefix',
    reason: 'In SCIM 2.0 an id belongs to one resource (RFC 7643 3.1).',
  },
  {
    section: '2.4',
    said: '`user.dn` and `user.directory` are the distinguished name and the directory of the user',
    done: 'Accepted, and not used: the user is found by the identifier',
    reason: 'A second name of the user could contradict the first.',
  },
  {
    section: '2.4',
    said: '`user.uid` and the attribute of `uidAttributeName` hold the identifier',
    done: '422 if they contradict each other',
    reason: 'It is unclear whom the call is about.',
  },
  {
    section: '2.4',
    said: '`user.groups` are the groups of the user',
    done: 'An empty list ends no memberships, unless `allowGroups` is set',
    reason: 'Callers send it in every body, and would remove all memberships.',
  },
  {
    section: '2.4',
    said: '`requestParams` is a map of texts',
    done: 'Keys that steer the engine are refused, except `UNISON.EXEC.TYPE`',
    reason: 'A caller could approve its own request.',
  },
  {
    section: '2.5',
    said: '`lookupAttributeName` is the attribute that users are looked up by',
    done: 'Beside an `idAttributeName` that names another attribute it has no effect, and `check` warns',
    reason: 'Ids that the gateway shows are the ids that it accepts.',
  },
  {
    section: '2.6',
    said: 'Endpoints have `azRules`',
    done: 'An endpoint without rules is refused',
    reason: 'Every service account of the cluster would get tokens.',
  },
  {
    section: '2.6',
    said: 'Discovery: `response_types_supported`, without values',
    done: '`id_token` only',
    reason: 'The token service has no interactive flows.',
  },
  {
    section: '4.2',
    said: 'POST /Users adds a user who is absent, and sets attributes',
    done: 'A user who is present and active gets 409',
    reason: 'RFC 7644 3.3: a client must learn that the account is not new.',
  },
  {
    section: '4.3',
    said: 'The call-workflow API runs the named workflow without additional validation',
    done: 'It runs workflows in `allowedWorkflow` only. Users of the directory act for themselves and name no groups, unless parameters allow more; callers without a directory entry may name anyone',
    reason: 'A user with a valid token could take over any account.',
  },
  {
    section: '5',
    said: 'The session cookie authenticates calls of the portal by a browser',
    done: 'Calls that change something also prove that they come from the same origin',
    reason: 'Other sites could make the browser send them.',
  },
  {
    section: '5',
    said: 'Workloads and callers present service-account tokens',
    done: 'Tokens for another audience are refused',
    reason: 'A service that receives a token could use it here.',
  },
]

/** The table of both pages. */
export function differencesTable(): string {
  const rows = differences.map((one) => `| ${one.section} | ${one.said} | ${one.done} | ${one.reason} |`)
  return ['| Section | Specification | Gatehouse | Reason |', '|---|---|---|---|', ...rows].join('\n')
}

const page = 'docs/migration-from-openunison.md'
const part = /(?<=<!-- differences -->\n\n).*?(?=\n\n<!-- \/differences -->)/s

/** The migration page with the current table. */
export const migrationPage = (): string => readFileSync(page, 'utf8').replace(part, () => differencesTable())

export const writeMigrationPage = (): void => writeFileSync(page, migrationPage())
