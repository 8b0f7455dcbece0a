// Tells who is logged in.
export const handle = (_request, { subject }) => ({ status: 200, json: { uid: subject.uid, level: subject.level } })
