/* SPDX-License-Identifier: Apache-2.0
 * random_golden.h: hashes of the first 1001 numbers of each distribution and type, in the order of test_random.c. They
 * never change. */
[UNIFORM] = {0x8f82d2569af6cba8, 0x6d96800f703eaad8, 0x3f386cbff41d6322, 0xa9c56e9f303384bd, 0, 0},
    [NORMAL] = {0x126e6fd155a86bd8, 0x6099149ea5520089, 0xe220ead062372839, 0xe40d8ae97f11ee57, 0, 0},
    [LOG_NORMAL] = {0x846833a173c3f49b, 0x4fd31bc19611968c, 0x782e644692a0defb, 0xe21fdc0c9eaa12e1, 0, 0},
    [EXPONENTIAL] = {0xf318abd5914e0ddb, 0x644081a7dc054ee0, 0xb46b72729c8c646c, 0x7023bac71e8c580f, 0, 0},
    [BERNOULLI] = {0x0c8e8f354876d0b8, 0x824047fa92e068a5, 0x3ed35f6974540a3d,
                   0x13164b70771b65a5, 0x7c5a98abddf83565, 0x4680394cc1593ba4},
    [INTEGERS] = {0xd58d82bdc95c513f, 0x347930c43420cd1c, 0x93e4af06846d129d,
                  0xd80c548291f7f4dc, 0xb6f465ba0d6c0f49, 0x842e1a69bad421cb},
    [WIDE_INTEGERS] = {0xa6c341b3ebd365cf, 0xa5e97ba476af5de8, 0, 0, 0x6878d5157ba70c0f, 0xac512df19ef382c3},
    [PERMUTATION] = {0, 0, 0, 0, 0xe770874ba71db790, 0xb908135391ecc8c0},
