/** Bodies of about a megabyte that are the most expensive to read. */
export const heavyBodies: readonly (() => string)[] = [
  () => '['.repeat(1_000_000),
  () => '{"a":'.repeat(200_000),
  () => `[${'{},'.repeat(330_000)}{}]`,
  () => `[${'[],'.repeat(330_000)}[]]`,
  () => `{${Array.from({ length: 80_000 }, (_, i) => `"k${i}":1`).join()}}`,
  () => `{${'"userName":"a",'.repeat(65_000)}"userName":"b"}`,
  () => `{"userName":"${'\\u0041'.repeat(170_000)}"}`,
  () => `{"displayName":"${'\\"'.repeat(500_000)}"}`,
  () =>
    `{"userName":"u","emails":[${Array.from({ length: 25_000 }, (_, i) => `{"value":"${i}@x.io","type":"t${i}"}`).join()}]}`,
  () =>
    `{"Operations":[${Array.from({ length: 900 }, (_, i) => `{"op":"add","path":"emails[value eq \\"${i}\\"].type","value":[${'1,'.repeat(400)}1]}`).join()}]}`,
  () =>
    `{"Operations":[{"op":"add","path":"members","value":[${Array.from({ length: 45_000 }, (_, i) => `{"value":"m${i}"}`).join()}]}]}`,
  () => `{"Operations":[${'{"method":"POST","path":"/Users","data":{"userName":1}},'.repeat(18_000)}{}]}`,
  () =>
    `[${Array.from({ length: 900 }, (_, i) => `{"uuid":"${i}","name":1,"reason":2,"subjects":[${'3,'.repeat(300)}3],"x":[]}`).join()}]`,
  () =>
    `{"user":{"attributes":[${Array.from({ length: 1900 }, (_, i) => `{"name":"${i}","values":[${'1,'.repeat(20)}1]}`).join()}]}}`,
  () => `{"attributes":{${Array.from({ length: 990 }, (_, i) => `"a${i}":{"b":[${'0,'.repeat(50)}0]}`).join()}}}`,
  () => 'a=b&'.repeat(250_000),
  () => '9'.repeat(1_000_000),
  () => `{"userName":${'9'.repeat(500_000)}}`,
  () => `"${'x'.repeat(1_000_000)}`,
]
