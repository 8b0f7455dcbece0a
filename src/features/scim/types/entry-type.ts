/** The type of the resources of one endpoint, which targets and workflows know as users. */
export interface EntryType {
  /** As `meta.resourceType` has it. */
  readonly name: string
  /** Below the address of the gateway, such as `/Users`. */
  readonly endpoint: `/${string}`
  /** The attribute with the name that targets and workflows know a resource by. */
  readonly nameAttribute: string
  /** As texts name it. */
  readonly noun: string
  /** A ResourceType object describes it. Such resources have no passwords, groups, managers and deactivation. */
  readonly isCustom: boolean
}

export const userType: EntryType = {
  name: 'User',
  endpoint: '/Users',
  nameAttribute: 'userName',
  noun: 'user',
  isCustom: false,
}
