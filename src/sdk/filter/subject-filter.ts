import type { Subject } from '#identity/subject.ts'
import type { LookupHost } from '#sdk/target/target.ts'

/** Returns the subject with other attributes or another name. The rules of the URL have seen the given one. */
export type ChangeSubject = (subject: Subject) => Promise<Subject>

/** A filter that only changes the subject, with checked parameters. */
export interface PreparedSubjectFilter {
  readonly className: string
  create(host: LookupHost): Promise<ChangeSubject>
}
