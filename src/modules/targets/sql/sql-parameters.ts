import { choice, flag, parsed, text, wholeNumber } from '#sdk/parameter-types.ts'
import type { ParameterTable } from '#sdk/parameters.ts'
import { passwordHashes } from './password-hash.ts'
import { parseColumnName, parseTableColumns, parseTableName } from './table-name.ts'

const table = (about: string) => parsed('table', parseTableName, { about })
const column = (about: string) => parsed('column', parseColumnName, { about })

/** What drivers of the predecessor's needed to be told, and ours do not. */
const ignored = (about: string) => text({ about: `${about} Taken from existing YAML, and not needed.` })

export const parameters = {
  url: text({
    about:
      '`postgres://…`, or `sqlite:` and a file that exists, relative to the configuration folder. `jdbc:` before it does no harm.',
    required: true,
    secret: true,
  }),
  user: text({ about: 'The user name, if the address does not contain it.' }),
  password: text({ about: 'The password, if the address does not contain it.', secret: true }),
  maxCons: wholeNumber({ about: 'Connections at the same time.', fallback: 10, min: 1, max: 200 }),
  timeoutMillis: wholeNumber({
    about: 'How long a statement, a connection or a lock may take, in milliseconds.',
    fallback: 10_000,
    min: 100,
    max: 120_000,
  }),
  searchLimit: wholeNumber({
    about: 'How many entries are filtered in memory if the database cannot evaluate a filter.',
    fallback: 10_000,
    min: 1,
    max: 1_000_000,
  }),
  userTable: table('The table, or view, of the users: `users` or `hr.users`.'),
  userName: column('The column of the login. It must be unique.'),
  userPrimaryKey: column(
    'The column that other tables refer to the user by, and the user’s id; the login when absent.',
  ),
  userVersion: column('A column that is given a new value with every change: a number, or a text of 36 characters.'),
  userCreated: column(
    'The column of the time at which the user was created, shown as `meta.created`. Where it has no default, the target writes it.',
  ),
  userModified: column(
    'The column of the time of the last change, shown as `meta.lastModified`. The target sets it with every change that it makes.',
  ),
  'column.<attribute>': column(
    'The column of an attribute with one value. Without any such parameter every other column of the user table is an attribute of that name.',
  ),
  'values.<attribute>': parsed('table and columns', parseTableColumns, {
    about:
      'The table of an attribute with several values: `emails(user_id, address)`, or `emails(user_id, address, rank)` where a number keeps their order.',
  }),
  groupMode: choice(['', 'None', 'Many2Many', 'One2Many'], {
    about:
      '`Many2Many`: groups and memberships have a table each; `One2Many`: groupTable holds a row with the group’s name for each membership; `None`. When absent, what the other parameters say.',
    fallback: '',
  }),
  groupTable: table('The table of the groups.'),
  groupName: column('Its column of the name.'),
  groupPrimaryKey: column('Its column that memberships refer to, and the group’s id; the name when absent.'),
  groupVersion: column('As `userVersion`.'),
  groupCreated: column('As `userCreated`.'),
  groupModified: column('As `userModified`.'),
  'groupColumn.<attribute>': column('The column of a group’s attribute, such as `description`.'),
  groupLinkTableName: table('The table of the memberships.'),
  groupUserKey: column('The column that refers to the user.'),
  groupGroupKey: column('The column that refers to the group.'),
  groupUserBy: choice(['', 'id', 'login'], {
    about: 'The content of groupUserKey: `id`, the value of userPrimaryKey, or `login`. `id` if there is one.',
    fallback: '',
  }),
  groupBy: choice(['', 'id', 'name'], {
    about: 'The content of groupGroupKey: `id`, the value of groupPrimaryKey, or `name`. `id` if there is one.',
    fallback: '',
  }),
  createMissingGroups: flag({
    about: 'Creates a missing group when a user joins it; otherwise it is an error.',
  }),
  passwordField: column('The column that passwords are written to, hashed.'),
  passwordHash: choice(passwordHashes, { about: 'How they are hashed, as PHC strings.', fallback: 'argon2id' }),
  'statement.<name>': text({ about: 'A statement of your own, instead of tables; see below.' }),
  driver: ignored('The JDBC driver.'),
  maxIdleCons: ignored('Idle connections.'),
  validationQuery: ignored('A statement that tries a connection.'),
  beginEscape: ignored('What names are quoted with.'),
  endEscape: ignored('What names are quoted with.'),
  supportPasswords: ignored('Whether there are passwords: `passwordField` says so.'),
} satisfies ParameterTable
