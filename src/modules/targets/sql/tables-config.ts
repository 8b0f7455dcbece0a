import type { TableName } from './table-name.ts'

/** An existing schema, as the configuration describes it. */
export interface TablesConfig {
  readonly users: {
    readonly table: TableName
    readonly login: string
    /** The key that other tables refer to; the login itself when absent. */
    readonly id: string | undefined
    readonly version: string | undefined
    readonly times: TimesConfig
    readonly password: string | undefined
    /** Column by attribute; every column that is nothing else when absent. */
    readonly columns: ReadonlyMap<string, string> | undefined
    /** Tables with a row for each value, by attribute. */
    readonly values: ReadonlyMap<string, ValuesConfig>
  }
  readonly groups: GroupsConfig | undefined
}

/** The columns of an entry's times. */
export interface TimesConfig {
  readonly created: string | undefined
  readonly modified: string | undefined
}

export interface ValuesConfig {
  readonly table: TableName
  /** Refers to the user. */
  readonly user: string
  readonly value: string
  /** Numbers the values of a user. */
  readonly position: string | undefined
}

export interface GroupsConfig {
  /** Who is in which group. */
  readonly members: { readonly table: TableName; readonly user: string; readonly group: string }
  readonly userBy: 'id' | 'login'
  /** The groups themselves; when absent, a group is there while somebody is in it, and `members.group` is its name. */
  readonly own:
    | {
        readonly table: TableName
        readonly name: string
        readonly id: string | undefined
        readonly version: string | undefined
        readonly times: TimesConfig
        readonly columns: ReadonlyMap<string, string>
        readonly groupBy: 'id' | 'name'
        /** A group that a user joins and that is not there is made. */
        readonly createMissing: boolean
      }
    | undefined
}
