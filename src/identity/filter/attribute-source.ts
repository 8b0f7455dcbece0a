/** What a filter, a mapping or a template reads: the values of a named attribute, none if it is absent. */
export interface AttributeSource {
  values(name: string): readonly string[]
  /** True where the values came from a token: letter case counts in them. */
  isClaim?(name: string): boolean
}
